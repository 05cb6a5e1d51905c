"""Bugs that any step can have: omitted, sign flipped, applied twice, reading another value."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from explorer.diagnosis.bugs.attention import attention_bug, position_bug
from explorer.diagnosis.bugs.norms_and_feed_forward import MAP_NAMES, change_hidden_pieces, replace_linear
from explorer.diagnosis.reference_formulas import KnownBug, ModelFormulas, linear, mask_scores
from explorer.translations import N_

VISIBLE_AT = {  # output of a map -> where its use is visible
    "attn.q": "attn.z",
    "attn.k": "attn.z",
    "attn.v": "attn.z",
    "attn.out": "second_norm_input",
    "ffn.gate_pre": "ffn.hidden",
    "ffn.up": "ffn.hidden",
    "ffn.out": "block_output",
}
VALUE_NAMES = {
    "q_rot": N_("the rotated queries"),
    "k_rot": N_("the rotated keys"),
    "scores": N_("the scores"),
    "pattern": N_("the attention pattern"),
    "z": N_("the weighted sum of values"),
}
LEFT_OUT, FLIPPED, TWICE = N_("{step} is left out"), N_("the sign of {step} is flipped"), N_("{step} is applied twice")


def skip_step(step: Callable) -> Callable:
    """Return the identity in the place of a step."""
    return lambda x, *more: x


def negate(step: Callable) -> Callable:
    """Return a step with its sign flipped."""
    return lambda x, *more: -step(x, *more)


def apply_twice(step: Callable) -> Callable:
    """Return a step that is applied twice."""
    return lambda x, *more: step(step(x, *more), *more)


def scale_bias(times: int):
    """Return the product of a map whose bias counts several times."""

    def product(x, name, weights):
        bias = weights.get(f"{name}.bias")
        plain = linear(x, name, weights)
        return plain if bias is None else plain + (times - 1) * bias

    return product


LINEAR_VARIANTS = (
    ("left_out", LEFT_OUT, skip_step(linear)),
    ("flipped", FLIPPED, negate(linear)),
    ("twice", TWICE, apply_twice(linear)),
)
BIAS_VARIANTS = (
    ("bias_subtracted", N_("the bias of {step} is subtracted"), scale_bias(-1)),
    ("bias_twice", N_("the bias of {step} is added twice"), scale_bias(2)),
)
USE_VARIANTS = ("flipped", FLIPPED, lambda y, again: -y), ("twice", TWICE, lambda y, again: again(y))


def replace_use(tap: str, use: Callable):
    """Return a change of the formulas that replaces the use of a value."""
    return lambda formulas, _tap: replace(formulas, uses={**formulas.uses, tap: use})


def linear_step_bugs(tap: str, step: str) -> Iterator[KnownBug]:
    """Yield the bugs of one map."""
    rows = [(f"{tap}_{kind}", text, tap, replace_linear(product)) for kind, text, product in LINEAR_VARIANTS]
    for kind, text, use in USE_VARIANTS if tap in VISIBLE_AT else ():
        if tap not in ("attn.out", "ffn.out") or kind == "twice":  # their signs show in a sum
            rows.append((f"{tap}_{kind}", text, VISIBLE_AT[tap], replace_use(tap, use)))
    rows += [(name, text, tap, replace_linear(product)) for name, text, product in BIAS_VARIANTS]
    for name, text, visible_at, change in rows:
        yield KnownBug(name, text, "" if tap == "logits" else tap, (visible_at,), change, values=(("step", step),))


def flipped_value_bug(name: str, step: str) -> KnownBug:
    """Return the bug that a value of the attention has the other sign."""
    tap = f"attn.{name}"
    change = replace_use(tap, lambda y, again: -y)
    return KnownBug(f"{tap}_flipped", FLIPPED, tap, ("attn.z",), change, values=(("step", step),))


def unnormalised_input_bug(tap: str) -> KnownBug:
    """Return the bug that a map reads the residual stream instead of its norm."""

    def change(formulas, _tap):
        read = (lambda b: b.x) if tap.startswith("attn") else (lambda b: b.m)
        return replace(formulas, linear_inputs={**formulas.linear_inputs, tap: read})

    text = N_("{step} reads the stream, not its norm")
    return KnownBug(f"{tap}_of_stream", text, tap, (tap,), change, values=(("step", MAP_NAMES[tap]),))


def apply_softmax_twice(is_second_masked: bool):
    """Return a function (scores, mask) -> pattern that applies the softmax twice, the second masked or not."""

    def pattern(scores: Tensor, allowed: Tensor) -> Tensor:
        once = torch.softmax(mask_scores(scores, allowed), -1)
        return torch.softmax(mask_scores(once, allowed) if is_second_masked else once, -1)

    return pattern


ATTENTION_STEP_BUGS = (
    position_bug("queries_turned_backwards", N_("queries are rotated by minus the angle"), queries=lambda m: -m),
    position_bug("queries_turned_twice", N_("queries are rotated twice"), queries=lambda m: 2 * m),
    position_bug("keys_turned_backwards", N_("keys are rotated by minus the angle"), keys=lambda m: -m),
    position_bug("keys_turned_twice", N_("keys are rotated twice"), keys=lambda m: 2 * m),
    *map(unnormalised_input_bug, ("attn.q", "attn.k", "attn.v", "ffn.gate_pre", "ffn.up")),
    attention_bug("softmax_twice", N_("the softmax is applied twice"), pattern=apply_softmax_twice(False)),
    attention_bug(
        "softmax_twice_masked", N_("the softmax is applied twice, masked both times"), pattern=apply_softmax_twice(True)
    ),
    attention_bug(
        "softmax_of_sum",
        N_("the softmax comes after the weighted sum of values"),
        pattern=lambda s, m: s * m,
        weighted_sum=lambda p, v: torch.softmax(p @ v, -1),
    ),
    attention_bug(
        "scale_after_softmax",
        N_("the pattern is divided by √d, and not the scores"),
        divisor=lambda c: 1.0,
        weighted_sum=lambda p, v: p @ v / v.shape[-1] ** 0.5,
    ),
    attention_bug(
        "sum_left_out", N_("the weighted sum is left out: each token keeps its own values"), weighted_sum=lambda p, v: v
    ),
    attention_bug("sum_twice", N_("the pattern is applied to the values twice"), weighted_sum=lambda p, v: p @ (p @ v)),
)


def wrap_hidden_piece(name: str, wrap: Callable[[Callable], Callable]):
    """Return a change of the formulas that wraps a piece of the hidden layer's formula."""
    return lambda formulas, tap: change_hidden_pieces({name: wrap(getattr(formulas.hidden, name))})(formulas, tap)


def activate_after_down(formulas: ModelFormulas, tap: str) -> ModelFormulas:
    """Return the formulas with the activation after the down projection."""
    activation = formulas.hidden.activation
    plain = replace(formulas.hidden, activation=lambda x: x)
    return replace(formulas, hidden=plain, uses={**formulas.uses, "ffn.out": lambda y, again: activation(y)})


def activate_input(formulas: ModelFormulas, tap: str) -> ModelFormulas:
    """Return the formulas with the activation of the feed-forward's input."""
    ffn_input = formulas.dataflow.ffn_input
    return replace(formulas, dataflow=replace(formulas.dataflow, ffn_input=lambda b: b.active(ffn_input(b))))


def hidden_bug(name: str, text: str, first_tap: str, change: Callable) -> KnownBug:
    """Return a bug that is visible at the input of the down projection."""
    return KnownBug(name, text, first_tap, ("ffn.hidden",), change)


ACTIVATED_INPUT = N_("the activation is taken of what the feed-forward reads")
STEP_BUGS = (
    *(bug for tap, step in MAP_NAMES.items() for bug in linear_step_bugs(tap, step)),
    *(flipped_value_bug(name, step) for name, step in VALUE_NAMES.items()),
    *ATTENTION_STEP_BUGS,
    hidden_bug(
        "activation_twice",
        N_("the activation is applied twice"),
        "ffn.gate",
        wrap_hidden_piece("activation", apply_twice),
    ),
    hidden_bug(
        "activation_flipped",
        N_("the sign of what the activation gives is flipped"),
        "ffn.gate",
        wrap_hidden_piece("activation", negate),
    ),
    hidden_bug(
        "hidden_flipped",
        N_("the sign of the product of gate and up is flipped"),
        "ffn.hidden",
        wrap_hidden_piece("joined", negate),
    ),
    hidden_bug(
        "up_squared",
        N_("it is multiplied by W₃ x twice"),
        "ffn.hidden",
        change_hidden_pieces({"joined": lambda a, u: a * u * u}),
    ),
    hidden_bug(
        "gate_squared",
        N_("it is multiplied by the gate twice"),
        "ffn.hidden",
        change_hidden_pieces({"joined": lambda a, u: a * a * u}),
    ),
    hidden_bug(
        "activation_after_maps", N_("the activation comes after the down projection"), "ffn.gate", activate_after_down
    ),
    KnownBug(
        "activation_before_maps",
        ACTIVATED_INPUT,
        "ffn.gate_pre",
        ("ffn_input",),
        activate_input,
        lambda config: config.is_gated,
    ),
    KnownBug(
        "activation_before_maps",
        ACTIVATED_INPUT,
        "ffn.up",
        ("ffn_input",),
        activate_input,
        lambda config: not config.is_gated,
    ),
)
