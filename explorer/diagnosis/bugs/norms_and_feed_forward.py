"""Bugs in RMSNorm and LayerNorm, x / √(mean x² + ε) · g, also by reduced precision; in linear maps and feed-forward."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.diagnosis.reference_formulas import KnownBug, ModelFormulas, identity, subtract_mean, with_gain
from explorer.translations import N_
from model.config import ModelConfig

TAPS = "attn_norm", "ffn_norm", "final_norm"


def sum_squares(squares: Tensor) -> Tensor:
    """Return the sum of squares, not their mean."""
    return squares.sum(-1, keepdim=True)


def divide_by_n_minus_1(squares: Tensor) -> Tensor:
    """Return the sample variance, with n − 1 in the denominator."""
    return squares.sum(-1, keepdim=True) / (squares.shape[-1] - 1)


def add_eps_outside(mean: Tensor, eps: float) -> Tensor:
    """Return the divisor with ε added after the square root."""
    return mean.sqrt() + eps


def without_gain(y: Tensor, gain: Tensor, shift: Tensor | None) -> Tensor:
    """Return the normalised vector without the gain."""
    return y if shift is None else y + shift


def without_gain_and_shift(y: Tensor, gain: Tensor, shift: Tensor | None) -> Tensor:
    """Return the normalised vector alone."""
    return y


NO_DIVISION = {"centre": identity, "root": lambda mean, eps: torch.ones_like(mean)}
NORM_BUGS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (  # name, words, changed pieces
    ("epsilon_outside_root", N_("ε is added outside of the root"), {"root": add_eps_outside}),
    ("no_epsilon", N_("ε is left out"), {"epsilon": lambda eps, width: 0.0}),
    (
        "epsilon_of_sum",
        N_("ε is added to the sum of squares, not to their mean"),
        {"epsilon": lambda eps, width: eps / width},
    ),
    ("epsilon_squared", N_("ε is squared"), {"epsilon": lambda eps, width: eps**2}),
    ("sum_for_mean", N_("the squares are summed, and not divided by how many they are"), {"mean": sum_squares}),
    (
        "length_of_one",
        N_("each vector is brought to length 1, as F.normalize does: √D is missing, and so is ε"),
        {"mean": sum_squares, "root": lambda mean, eps: mean.sqrt().clamp_min(1e-12)},
    ),
    ("no_root", N_("the root is left out"), {"root": lambda mean, eps: mean + eps}),
    ("unbiased_variance", N_("the variance divides by D − 1, not by D"), {"mean": divide_by_n_minus_1}),
    (
        "unbiased_deviation",
        N_("the deviation divides by D − 1, not by D, and ε is added outside of the root"),
        {"mean": divide_by_n_minus_1, "root": add_eps_outside},
    ),
    ("mean_subtracted", N_("the mean is subtracted, as a LayerNorm does"), {"centre": subtract_mean}),
    (
        "mean_subtracted_above",
        N_("the mean is subtracted from what is divided, and not from what it is divided by"),
        {"centre": subtract_mean, "measured": lambda x, c: x},
    ),
    (
        "variance_for_mean_square",
        N_("it divides by the root of the variance, not of the mean square"),
        {"measured": lambda x, c: subtract_mean(x)},
    ),
    (
        "deviation_for_mean_square",
        N_("it divides by the standard deviation, with D − 1 and with ε outside of the root"),
        {"measured": lambda x, c: subtract_mean(x), "mean": divide_by_n_minus_1, "root": add_eps_outside},
    ),
    ("mean_kept", N_("the mean is not subtracted, as in an RMSNorm"), {"centre": identity}),
    ("gain_left_out", N_("the gain is left out"), {"applied": without_gain}),
    ("shift_left_out", N_("the shift β is left out"), {"applied": lambda y, gain, shift: y * gain}),
    ("gain_and_shift_left_out", N_("gain and shift are left out"), {"applied": without_gain_and_shift}),
    (
        "one_plus_gain",
        N_("it is multiplied by 1 + the gain, as Gemma’s norms are"),
        {"applied": lambda y, gain, shift: y * (1 + gain)},
    ),
    (
        "norm_over_tokens",
        N_("the mean is taken over tokens, not over each one’s dimensions"),
        {"centre": identity, "mean": lambda squares: squares.mean(0, keepdim=True)},
    ),
    (
        "norm_over_all",
        N_("the mean is taken over tokens and dimensions together"),
        {"centre": identity, "mean": lambda squares: squares.mean()},
    ),
    (
        "division_left_out",
        N_("the division by the root is left out"),
        {"root": lambda mean, eps: torch.ones_like(mean)},
    ),
    (
        "norm_flipped",
        N_("the sign of the norm is flipped"),
        {"applied": lambda y, gain, shift: -with_gain(y, gain, shift)},
    ),
    ("norm_twice", N_("the norm is applied twice"), {"times": 2}),
    ("epsilon_subtracted", N_("ε is subtracted, not added"), {"epsilon": lambda eps, width: -eps}),
    (
        "epsilon_of_reciprocal",
        N_("ε is added to the reciprocal root"),
        {"root": lambda mean, eps: 1 / (mean.rsqrt() + eps)},
    ),
    (
        "epsilon_as_least",
        N_("ε is the least that the mean may be, and is not added"),
        {"root": lambda mean, eps: mean.clamp_min(eps).sqrt()},
    ),
    ("root_twice", N_("the root is taken twice"), {"root": lambda mean, eps: (mean + eps).sqrt().sqrt()}),
    (
        "multiplied_by_root",
        N_("it is multiplied by the root, not divided"),
        {"root": lambda mean, eps: (mean + eps).rsqrt()},
    ),
    (
        "gain_flipped",
        N_("the sign of the gain is flipped"),
        {"applied": lambda y, gain, shift: with_gain(y, -gain, shift)},
    ),
    ("gain_twice", N_("the gain is applied twice"), {"applied": lambda y, gain, shift: with_gain(y, gain**2, shift)}),
    (
        "gain_first",
        N_("the gain comes before the division"),
        {"scaled": lambda x, gain: x * gain, "applied": without_gain},
    ),
    ("shift_subtracted", N_("the shift β is subtracted"), {"applied": lambda y, gain, shift: y * gain - shift}),
    ("shift_twice", N_("the shift β is added twice"), {"applied": lambda y, gain, shift: y * gain + 2 * shift}),
    ("shift_first", N_("the shift β comes before the gain"), {"applied": lambda y, gain, shift: (y + shift) * gain}),
    ("mean_added", N_("the mean is added, not subtracted"), {"centre": lambda x: x + x.mean(-1, keepdim=True)}),
    ("norm_left_out", N_("the norm is left out"), {**NO_DIVISION, "applied": without_gain_and_shift}),
    ("only_gain", N_("the norm only multiplies by its gain"), NO_DIVISION),
)
LAYERNORM_BUGS = (
    *("mean_kept", "mean_added", "division_left_out", "gain_flipped", "gain_and_shift_left_out"),
    *("shift_left_out", "shift_subtracted", "shift_twice", "shift_first"),
)
RMSNORM_BUGS = (
    "mean_subtracted",
    "mean_subtracted_above",
    "one_plus_gain",
    "variance_for_mean_square",
    "deviation_for_mean_square",
)
OTHER_EPSILON = {
    1e-3: N_("ε is 0.001"),
    1e-4: N_("ε is 0.0001"),
    1e-5: N_("ε is 0.00001"),
    1e-6: N_("ε is 0.000001"),
    1e-8: N_("ε is 0.00000001"),
    1e-12: N_("ε is 10⁻¹²"),
}


def norm_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of norms."""
    for name, text, pieces in NORM_BUGS:
        kinds = ("layernorm",) * (name not in RMSNORM_BUGS) + ("rmsnorm",) * (name not in LAYERNORM_BUGS)
        taps = TAPS[:2] if name == "norm_left_out" else TAPS  # the last is a slip of its own
        yield KnownBug(
            name, text, "", taps, change_norm_pieces(pieces), lambda config, kinds=kinds: config.norm in kinds
        )
    for eps, text in OTHER_EPSILON.items():
        name = f"epsilon_{eps:.0e}".replace("-0", "-")
        yield KnownBug(name, text, "", TAPS, change_norm_pieces({"epsilon": lambda _eps, _width, eps=eps: eps}))


def change_norm_pieces(pieces: Mapping[str, Any]):
    """Return a change of the formulas that replaces pieces of a norm."""

    def change(formulas: ModelFormulas, tap: str) -> ModelFormulas:
        name = tap.split(".")[-1]
        return formulas.with_norm(name, formulas.norms[name].replace(**pieces))

    return change


MAX_HALF_UNITS = 16  # maximum error of a norm in lower precision, in half units in the last place
RELATIVE_HALF_UNIT = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def keep_formulas(formulas: ModelFormulas, tap: str) -> ModelFormulas:
    """Return the formulas unchanged."""
    return formulas


FLOAT16 = KnownBug("float16_norm", N_("the norm is computed in float16, not in float32"), "", TAPS, keep_formulas)
BFLOAT16 = KnownBug("bfloat16_norm", N_("the norm is computed in bfloat16, not in float32"), "", TAPS, keep_formulas)
PRECISION = {torch.bfloat16: BFLOAT16, torch.float16: FLOAT16}  # float16 can hold most numbers of bfloat16, too


def find_reduced_precision(actual: Tensor, expected: Tensor, x: Tensor, gain: Tensor, norm) -> KnownBug | None:
    """Return the bug that a norm is computed in lower precision; None where its output does not show it.

    All numbers of the output, or of the output before the gain, are representable in that dtype and close to the
    expected ones; or they are exactly those of a rounded input.

    Args:
        actual, expected: (T, D) outputs of the norm.
        x: (T, D) its input.
        norm: the correct norm, as a function of its input.
    """
    for dtype, bug in PRECISION.items():
        tolerance = MAX_HALF_UNITS * RELATIVE_HALF_UNIT[dtype]
        if not ((actual - expected).abs() <= tolerance * expected.abs() + tolerance * 1e-2).all():
            continue
        normalised = actual / gain
        rounded = normalised.to(dtype).float()
        if torch.equal(actual, actual.to(dtype).float()) or torch.allclose(normalised, rounded, rtol=1e-6, atol=0):
            return bug
        if torch.allclose(norm(x.to(dtype).float()), actual, rtol=1e-6, atol=1e-7):
            return bug
    return None


MAPS = "attn.q", "attn.k", "attn.v", "attn.out", "ffn.gate_pre", "ffn.up", "ffn.out", "logits"


def multiply_untransposed(x, name, weights):
    """Return x W instead of x Wᵀ, which only square maps allow."""
    return F.linear(x, weights[f"{name}.weight"].T, weights.get(f"{name}.bias"))


def multiply_without_bias(x, name, weights):
    """Return the product with a map's weight, without its bias."""
    return F.linear(x, weights[f"{name}.weight"])


def linear_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of linear maps."""
    for name, text, product in (
        ("weight_transposed", N_("the weight is transposed: x W, not x Wᵀ"), multiply_untransposed),
        ("bias_left_out", N_("the bias is left out"), multiply_without_bias),
    ):

        def change(formulas, tap, product=product):
            plain_tap = tap.split(".", 2)[-1] if tap.startswith("blocks.") else tap
            return formulas.replace(linears={**formulas.linears, plain_tap: product})

        yield KnownBug(name, text, "", MAPS, change)


def gelu_tanh(x):
    """Return GELU in its tanh approximation."""
    return F.gelu(x, approximate="tanh")


GATED_VARIANTS = (  # name, words, place, changed pieces
    (
        "gate_and_up_swapped",
        N_("gate and up are swapped: SiLU is taken of W₃ x"),
        "gate",
        {"gate_and_up": lambda gate, up: (up, gate)},
    ),
    ("gate_for_up", N_("the gate multiplies itself: W₃ x is not used"), "hidden", {"gate_and_up": lambda g, u: (g, g)}),
    ("up_for_gate", N_("W₃ x is its own gate: W₁ x is not used"), "gate_pre", {"gate_and_up": lambda g, u: (u, u)}),
    ("silu_of_both", N_("SiLU is taken of gate and up"), "hidden", {"gate_and_up": lambda g, u: (g, F.silu(u))}),
    ("silu_left_out", N_("SiLU is left out"), "gate", {"activation": lambda x: x}),
    ("sigmoid_for_silu", N_("the gate is a sigmoid, not SiLU"), "gate", {"activation": torch.sigmoid}),
    ("gelu_for_silu", N_("the gate is GELU, not SiLU"), "gate", {"activation": F.gelu}),
    ("gelu_tanh_for_silu", N_("the gate is GELU’s approximation, not SiLU"), "gate", {"activation": gelu_tanh}),
    ("relu_for_silu", N_("the gate is ReLU, not SiLU"), "gate", {"activation": torch.relu}),
    (
        "up_left_out",
        N_("the gate multiplies nothing: W₃ x is left out"),
        "hidden",
        {"joined": lambda active, other: active},
    ),
    ("gate_left_out", N_("the gate W₁ x is left out"), "hidden", {"joined": lambda active, other: other}),
    (
        "gate_added",
        N_("gate and up are added, not multiplied"),
        "hidden",
        {"joined": lambda active, other: active + other},
    ),
    (
        "silu_of_product",
        N_("SiLU is taken of the product"),
        "hidden",
        {"gate_and_up": lambda g, u: (g * u, torch.ones_like(u))},
    ),
)
UNGATED_VARIANTS = (
    ("relu_for_activation", N_("the activation is ReLU"), torch.relu),
    ("relu2_for_activation", N_("the activation is ReLU²"), lambda x: torch.relu(x).square()),
    ("gelu_for_activation", N_("the activation is GELU"), F.gelu),
    ("gelu_tanh_for_activation", N_("the activation is GELU’s approximation"), gelu_tanh),
    ("silu_for_activation", N_("the activation is SiLU"), F.silu),
    ("tanh_for_activation", N_("the activation is tanh"), torch.tanh),
    ("activation_left_out", N_("the activation is left out"), lambda x: x),
)


def feed_forward_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of the feed-forward."""
    for name, text, first_tap, pieces in GATED_VARIANTS:
        yield KnownBug(name, text, f"ffn.{first_tap}", ("ffn.hidden",), change_hidden_pieces(pieces), is_gated)
    for name, text, activation in UNGATED_VARIANTS:
        pieces = {"activation": activation}
        yield KnownBug(
            name, text, "ffn.hidden", ("ffn.hidden",), change_hidden_pieces(pieces), lambda config: not config.is_gated
        )


def is_gated(config: ModelConfig) -> bool:
    """Return whether the feed-forward is gated."""
    return config.is_gated


def change_hidden_pieces(pieces: Mapping[str, Any]):
    """Return a change of the formulas that replaces pieces of the hidden layer's formula."""
    return lambda formulas, tap: formulas.replace(hidden=formulas.hidden.replace(**pieces))
