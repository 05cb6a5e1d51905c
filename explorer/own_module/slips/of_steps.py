"""Slips that any step can have: left out, its sign flipped, applied twice, with another's weight."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from explorer.language import N_
from explorer.own_module.formulas import Formulas, linear, masked
from explorer.own_module.slips.of_maps import MAPS
from explorer.own_module.slips.slip import Slip
from explorer.own_module.wiring import Value

MAP_NAMES = {
    "attn.q": N_("the query projection"),
    "attn.k": N_("the key projection"),
    "attn.v": N_("the value projection"),
    "attn.out": N_("the output projection"),
    "ffn.gate_pre": N_("the gate projection"),
    "ffn.up": N_("the up projection"),
    "ffn.out": N_("the down projection"),
    "logits": N_("the unembedding"),
}
USED_AT = {"attn.q": "attn.z", "attn.k": "attn.z", "attn.v": "attn.z", "attn.out": "middle", "ffn.out": "leaves"}
USED_AT |= dict.fromkeys(("ffn.gate_pre", "ffn.up"), "ffn.hidden")
VALUE_NAMES = {
    "q_rot": N_("the rotated queries"),
    "k_rot": N_("the rotated keys"),
    "scores": N_("the scores"),
    "pattern": N_("the attention pattern"),
    "z": N_("the weighted sum of values"),
}
LEFT_OUT, FLIPPED, TWICE = N_("{step} is left out"), N_("the sign of {step} is flipped"), N_("{step} is applied twice")
POSITIONS = {  # of what is rotated alone: name, words, what its positions become
    "q": (
        ("queries_turned_backwards", N_("queries are rotated by minus the angle"), lambda m: -m),
        ("queries_turned_twice", N_("queries are rotated twice"), lambda m: 2 * m),
    ),
    "k": (
        ("keys_turned_backwards", N_("keys are rotated by minus the angle"), lambda m: -m),
        ("keys_turned_twice", N_("keys are rotated twice"), lambda m: 2 * m),
    ),
}


def left_out(step: Callable) -> Callable:
    return lambda x, *more: x


def flipped(step: Callable) -> Callable:
    return lambda x, *more: -step(x, *more)


def twice(step: Callable) -> Callable:
    return lambda x, *more: step(step(x, *more), *more)


KINDS = (("left_out", LEFT_OUT, left_out), ("flipped", FLIPPED, flipped), ("twice", TWICE, twice))
USES = (("flipped", FLIPPED, lambda y, again: -y), ("twice", TWICE, lambda y, again: again(y)))


def with_linear(tap: str, product: Callable[[Tensor, str, Mapping[str, Tensor]], Tensor]):
    return lambda formulas, _tap: formulas.but(linears={**formulas.linears, tap: product})


def with_use(tap: str, use: Callable):
    return lambda formulas, _tap: formulas.but(uses={**formulas.uses, tap: use})


def with_read(tap: str, read: Value):
    return lambda formulas, _tap: formulas.but(reads={**formulas.reads, tap: read})


def step_slips() -> Iterator[Slip]:
    """Those of all models."""
    for tap, step in MAP_NAMES.items():
        at = "" if tap == "logits" else tap
        for kind, words, change in KINDS:
            yield Slip(f"{tap}_{kind}", words, at, (tap,), with_linear(tap, change(linear)), values=(("step", step),))
        for kind, words, use in USES:
            if tap in USED_AT and (tap not in ("attn.out", "ffn.out") or kind == "twice"):  # a sum tells of their signs
                slip = Slip(f"{tap}_{kind}", words, at, (USED_AT[tap],), with_use(tap, use), values=(("step", step),))
                yield slip
        for name, times, words in (
            ("bias_subtracted", -1, N_("the bias of {step} is subtracted")),
            ("bias_twice", 2, N_("the bias of {step} is added twice")),
        ):
            biased = with_bias(times)
            yield Slip(name, words, at, (tap,), with_linear(tap, biased), values=(("step", step),))
    for name, step in VALUE_NAMES.items():
        use = with_use(f"attn.{name}", lambda y, again: -y)
        yield Slip(f"attn.{name}_flipped", FLIPPED, f"attn.{name}", ("attn.z",), use, values=(("step", step),))
    for which, variants in POSITIONS.items():
        for name, words, change in variants:
            yield Slip(name, words, f"attn.{which}_rot", ("attn.z",), turning(which, change))
    yield from reading_slips()
    yield from attention_step_slips()
    yield from feed_forward_step_slips()


def with_bias(times: int):
    def product(x, name, weights):
        bias = weights.get(f"{name}.bias")
        plain = linear(x, name, weights)
        return plain if bias is None else plain + (times - 1) * bias

    return product


def turning(which: str, change: Callable[[Tensor], Tensor]):
    def slip(formulas, tap):
        def positions(length):
            queries, keys = formulas.positions(length)
            return (change(queries), keys) if which == "q" else (queries, change(keys))

        return formulas.but(positions=positions)

    return slip


def reading_slips() -> Iterator[Slip]:
    """Maps that read the stream."""
    for tap, read in {tap: (lambda b: b.x) for tap in MAPS[:3]}.items():
        words = N_("{step} reads the stream, not its norm")
        yield Slip(f"{tap}_of_stream", words, tap, (tap,), with_read(tap, read), values=(("step", MAP_NAMES[tap]),))
    for tap in ("ffn.gate_pre", "ffn.up"):
        words = N_("{step} reads the stream, not its norm")
        change = with_read(tap, lambda b: b.m)
        yield Slip(f"{tap}_of_stream", words, tap, (tap,), change, values=(("step", MAP_NAMES[tap]),))


def softmax_again(is_masked: bool):
    def pattern(scores: Tensor, allowed: Tensor) -> Tensor:
        once = torch.softmax(masked(scores, allowed), -1)
        return torch.softmax(masked(once, allowed) if is_masked else once, -1)

    return pattern


def attention_step_slips() -> Iterator[Slip]:
    """Steps between the attention's maps."""
    for name, words, place, changed in (
        (
            "softmax_twice",
            N_("the softmax is applied twice"),
            "pattern",
            {"pattern": softmax_again(False)},
        ),
        (
            "softmax_twice_masked",
            N_("the softmax is applied twice, masked both times"),
            "pattern",
            {"pattern": softmax_again(True)},
        ),
        (
            "softmax_of_sum",
            N_("the softmax comes after the weighted sum of values"),
            "pattern",
            {"pattern": lambda s, m: s * m, "fetched": lambda p, v: torch.softmax(p @ v, -1)},
        ),
        (
            "scale_after_softmax",
            N_("the pattern is divided by √d, and not the scores"),
            "scores",
            {"divisor": lambda c: 1.0, "fetched": lambda p, v: p @ v / v.shape[-1] ** 0.5},
        ),
        (
            "sum_left_out",
            N_("the weighted sum is left out: each token keeps its own values"),
            "z",
            {"fetched": lambda p, v: v},
        ),
        ("sum_twice", N_("the pattern is applied to the values twice"), "z", {"fetched": lambda p, v: p @ (p @ v)}),
    ):
        yield Slip(name, words, f"attn.{place}", ("attn.z",), lambda f, tap, changed=changed: f.but(**changed))


def feed_forward_step_slips() -> Iterator[Slip]:
    """Steps between the feed-forward's maps."""
    for name, words, place, change in (
        (
            "activation_twice",
            N_("the activation is applied twice"),
            "ffn.gate",
            lambda h: h.but(activation=twice(h.activation)),
        ),
        (
            "activation_flipped",
            N_("the sign of what the activation gives is flipped"),
            "ffn.gate",
            lambda h: h.but(activation=flipped(h.activation)),
        ),
        (
            "hidden_flipped",
            N_("the sign of the product of gate and up is flipped"),
            "ffn.hidden",
            lambda h: h.but(joined=flipped(h.joined)),
        ),
        (
            "up_squared",
            N_("it is multiplied by W₃ x twice"),
            "ffn.hidden",
            lambda h: h.but(joined=lambda a, u: a * u * u),
        ),
        (
            "gate_squared",
            N_("it is multiplied by the gate twice"),
            "ffn.hidden",
            lambda h: h.but(joined=lambda a, u: a * a * u),
        ),
    ):

        def changed(formulas: Formulas, tap: str, change=change) -> Formulas:
            return formulas.but(hidden=change(formulas.hidden))

        yield Slip(name, words, place, ("ffn.hidden",), changed)

    def after_maps(formulas: Formulas, tap: str) -> Formulas:
        plain = formulas.hidden.but(activation=lambda x: x)
        act = formulas.hidden.activation
        return formulas.but(hidden=plain, uses={**formulas.uses, "ffn.out": lambda y, again: act(y)})

    words = N_("the activation comes after the down projection")
    yield Slip("activation_after_maps", words, "ffn.gate", ("ffn.hidden",), after_maps)

    def before_maps(formulas: Formulas, tap: str) -> Formulas:
        then = formulas.wiring.then
        return formulas.but(wiring=replace(formulas.wiring, then=lambda b: b.active(then(b))))

    words = N_("the activation is taken of what the feed-forward reads")
    for place, gated in (("ffn.gate_pre", True), ("ffn.up", False)):
        of = lambda config, gated=gated: config.is_gated == gated  # noqa: E731
        yield Slip("activation_before_maps", words, place, ("then",), before_maps, of)
