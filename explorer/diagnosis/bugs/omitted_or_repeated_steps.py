"""Bugs that any step can have: omitted, sign flipped, applied twice, reading another value."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from explorer.diagnosis.bugs.norms_and_feed_forward import MAPS
from explorer.diagnosis.reference_formulas import KnownBug, ModelFormulas, Value, linear, mask_scores
from explorer.translations import N_

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
VISIBLE_AT = {
    "attn.q": "attn.z",
    "attn.k": "attn.z",
    "attn.v": "attn.z",
    "attn.out": "second_norm_input",
    "ffn.out": "block_output",
}
VISIBLE_AT |= dict.fromkeys(("ffn.gate_pre", "ffn.up"), "ffn.hidden")
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


def skip_step(step: Callable) -> Callable:
    """Return the identity in the place of a step."""
    return lambda x, *more: x


def negate(step: Callable) -> Callable:
    """Return a step with its sign flipped."""
    return lambda x, *more: -step(x, *more)


def apply_twice(step: Callable) -> Callable:
    """Return a step that is applied twice."""
    return lambda x, *more: step(step(x, *more), *more)


STEP_VARIANTS = (("left_out", LEFT_OUT, skip_step), ("flipped", FLIPPED, negate), ("twice", TWICE, apply_twice))
USE_VARIANTS = (("flipped", FLIPPED, lambda y, again: -y), ("twice", TWICE, lambda y, again: again(y)))


def replace_linear(tap: str, product: Callable[[Tensor, str, Mapping[str, Tensor]], Tensor]):
    """Return a change of the formulas that replaces the product of a map."""
    return lambda formulas, _tap: formulas.replace(linears={**formulas.linears, tap: product})


def replace_use(tap: str, use: Callable):
    """Return a change of the formulas that replaces the use of a value."""
    return lambda formulas, _tap: formulas.replace(uses={**formulas.uses, tap: use})


def replace_linear_input(tap: str, read: Value):
    """Return a change of the formulas that replaces the input of a map."""
    return lambda formulas, _tap: formulas.replace(linear_inputs={**formulas.linear_inputs, tap: read})


def step_bugs() -> Iterator[KnownBug]:
    """Yield the step bugs of all models."""
    for tap, step in MAP_NAMES.items():
        plain_tap = "" if tap == "logits" else tap
        for kind, text, change in STEP_VARIANTS:
            yield KnownBug(
                f"{tap}_{kind}", text, plain_tap, (tap,), replace_linear(tap, change(linear)), values=(("step", step),)
            )
        for kind, text, use in USE_VARIANTS:
            if tap in VISIBLE_AT and (
                tap not in ("attn.out", "ffn.out") or kind == "twice"
            ):  # their signs show in a sum
                bug = KnownBug(
                    f"{tap}_{kind}",
                    text,
                    plain_tap,
                    (VISIBLE_AT[tap],),
                    replace_use(tap, use),
                    values=(("step", step),),
                )
                yield bug
        for name, times, text in (
            ("bias_subtracted", -1, N_("the bias of {step} is subtracted")),
            ("bias_twice", 2, N_("the bias of {step} is added twice")),
        ):
            biased = scale_bias(times)
            yield KnownBug(name, text, plain_tap, (tap,), replace_linear(tap, biased), values=(("step", step),))
    for name, step in VALUE_NAMES.items():
        use = replace_use(f"attn.{name}", lambda y, again: -y)
        yield KnownBug(f"attn.{name}_flipped", FLIPPED, f"attn.{name}", ("attn.z",), use, values=(("step", step),))
    for vector, variants in POSITIONS.items():
        for name, text, change in variants:
            yield KnownBug(name, text, f"attn.{vector}_rot", ("attn.z",), change_positions(vector, change))
    yield from unnormalised_input_bugs()
    yield from attention_step_bugs()
    yield from feed_forward_step_bugs()


def scale_bias(times: int):
    """Return the product of a map whose bias counts several times."""

    def product(x, name, weights):
        bias = weights.get(f"{name}.bias")
        plain = linear(x, name, weights)
        return plain if bias is None else plain + (times - 1) * bias

    return product


def change_positions(vector: str, change: Callable[[Tensor], Tensor]):
    """Return a change of the formulas that changes the positions of the queries or keys."""

    def change_formulas(formulas, tap):
        def positions(length):
            queries, keys = formulas.positions(length)
            return (change(queries), keys) if vector == "q" else (queries, change(keys))

        return formulas.replace(positions=positions)

    return change_formulas


def unnormalised_input_bugs() -> Iterator[KnownBug]:
    """Yield bugs of maps that read the residual stream instead of its norm."""
    for tap, read in {tap: (lambda b: b.x) for tap in MAPS[:3]}.items():
        text = N_("{step} reads the stream, not its norm")
        yield KnownBug(
            f"{tap}_of_stream", text, tap, (tap,), replace_linear_input(tap, read), values=(("step", MAP_NAMES[tap]),)
        )
    for tap in ("ffn.gate_pre", "ffn.up"):
        text = N_("{step} reads the stream, not its norm")
        change = replace_linear_input(tap, lambda b: b.m)
        yield KnownBug(f"{tap}_of_stream", text, tap, (tap,), change, values=(("step", MAP_NAMES[tap]),))


def apply_softmax_twice(is_second_masked: bool):
    """Return a function (scores, mask) -> pattern that applies the softmax twice, the second masked or not."""

    def pattern(scores: Tensor, allowed: Tensor) -> Tensor:
        once = torch.softmax(mask_scores(scores, allowed), -1)
        return torch.softmax(mask_scores(once, allowed) if is_second_masked else once, -1)

    return pattern


def attention_step_bugs() -> Iterator[KnownBug]:
    """Yield bugs of steps between the attention's maps."""
    for name, text, first_tap, changed in (
        (
            "softmax_twice",
            N_("the softmax is applied twice"),
            "pattern",
            {"pattern": apply_softmax_twice(False)},
        ),
        (
            "softmax_twice_masked",
            N_("the softmax is applied twice, masked both times"),
            "pattern",
            {"pattern": apply_softmax_twice(True)},
        ),
        (
            "softmax_of_sum",
            N_("the softmax comes after the weighted sum of values"),
            "pattern",
            {"pattern": lambda s, m: s * m, "weighted_sum": lambda p, v: torch.softmax(p @ v, -1)},
        ),
        (
            "scale_after_softmax",
            N_("the pattern is divided by √d, and not the scores"),
            "scores",
            {"divisor": lambda c: 1.0, "weighted_sum": lambda p, v: p @ v / v.shape[-1] ** 0.5},
        ),
        (
            "sum_left_out",
            N_("the weighted sum is left out: each token keeps its own values"),
            "z",
            {"weighted_sum": lambda p, v: v},
        ),
        (
            "sum_twice",
            N_("the pattern is applied to the values twice"),
            "z",
            {"weighted_sum": lambda p, v: p @ (p @ v)},
        ),
    ):
        yield KnownBug(
            name, text, f"attn.{first_tap}", ("attn.z",), lambda f, tap, changed=changed: f.replace(**changed)
        )


def feed_forward_step_bugs() -> Iterator[KnownBug]:
    """Yield bugs of steps between the feed-forward's maps."""
    for name, text, first_tap, change in (
        (
            "activation_twice",
            N_("the activation is applied twice"),
            "ffn.gate",
            lambda h: h.replace(activation=apply_twice(h.activation)),
        ),
        (
            "activation_flipped",
            N_("the sign of what the activation gives is flipped"),
            "ffn.gate",
            lambda h: h.replace(activation=negate(h.activation)),
        ),
        (
            "hidden_flipped",
            N_("the sign of the product of gate and up is flipped"),
            "ffn.hidden",
            lambda h: h.replace(joined=negate(h.joined)),
        ),
        (
            "up_squared",
            N_("it is multiplied by W₃ x twice"),
            "ffn.hidden",
            lambda h: h.replace(joined=lambda a, u: a * u * u),
        ),
        (
            "gate_squared",
            N_("it is multiplied by the gate twice"),
            "ffn.hidden",
            lambda h: h.replace(joined=lambda a, u: a * a * u),
        ),
    ):

        def change_hidden(formulas: ModelFormulas, tap: str, change=change) -> ModelFormulas:
            return formulas.replace(hidden=change(formulas.hidden))

        yield KnownBug(name, text, first_tap, ("ffn.hidden",), change_hidden)

    def activate_after_down(formulas: ModelFormulas, tap: str) -> ModelFormulas:
        plain = formulas.hidden.replace(activation=lambda x: x)
        act = formulas.hidden.activation
        return formulas.replace(hidden=plain, uses={**formulas.uses, "ffn.out": lambda y, again: act(y)})

    text = N_("the activation comes after the down projection")
    yield KnownBug("activation_after_maps", text, "ffn.gate", ("ffn.hidden",), activate_after_down)

    def activate_input(formulas: ModelFormulas, tap: str) -> ModelFormulas:
        ffn_input = formulas.dataflow.ffn_input
        return formulas.replace(dataflow=replace(formulas.dataflow, ffn_input=lambda b: b.active(ffn_input(b))))

    text = N_("the activation is taken of what the feed-forward reads")
    for first_tap, gated in (("ffn.gate_pre", True), ("ffn.up", False)):
        applies_to = lambda config, gated=gated: config.is_gated == gated  # noqa: E731
        yield KnownBug("activation_before_maps", text, first_tap, ("ffn_input",), activate_input, applies_to)
