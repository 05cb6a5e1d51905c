"""Bugs in RMSNorm and LayerNorm, x / √(mean x² + ε) · g, also by reduced precision; in linear maps and feed-forward."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.diagnosis.reference_formulas import KnownBug, ModelFormulas, identity, subtract_mean, with_gain
from explorer.translations import N_

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


def change_norm_pieces(pieces: Mapping[str, Any]):
    """Return a change of the formulas that replaces pieces of a norm."""

    def change(formulas: ModelFormulas, tap: str) -> ModelFormulas:
        return formulas.with_norm(tap, replace(formulas.norms[tap], **pieces))

    return change


def norm_bug(name: str, text: str, kind: str = "", **pieces) -> KnownBug:
    """Return the bug that norms, of one kind if it is given, have these pieces."""
    return KnownBug(name, text, "", TAPS, change_norm_pieces(pieces), lambda config: kind in ("", config.norm))


NO_DIVISION = {"centre": identity, "root": lambda mean, eps: torch.ones_like(mean)}
NORM_LEFT_OUT = {**NO_DIVISION, "applied": without_gain_and_shift}
EPSILONS = {
    "1e-3": "0.001",
    "1e-4": "0.0001",
    "1e-5": "0.00001",
    "1e-6": "0.000001",
    "1e-8": "0.00000001",
    "1e-12": "10⁻¹²",
}
NORM_BUGS = (
    norm_bug("epsilon_outside_root", N_("ε is added outside of the root"), root=add_eps_outside),
    norm_bug("no_epsilon", N_("ε is left out"), epsilon=lambda eps, width: 0.0),
    norm_bug(
        "epsilon_of_sum",
        N_("ε is added to the sum of squares, not to their mean"),
        epsilon=lambda eps, width: eps / width,
    ),
    norm_bug("epsilon_squared", N_("ε is squared"), epsilon=lambda eps, width: eps**2),
    norm_bug("sum_for_mean", N_("the squares are summed, and not divided by how many they are"), mean=sum_squares),
    norm_bug(
        "length_of_one",
        N_("each vector is brought to length 1, as F.normalize does: √D is missing, and so is ε"),
        mean=sum_squares,
        root=lambda mean, eps: mean.sqrt().clamp_min(1e-12),
    ),
    norm_bug("no_root", N_("the root is left out"), root=lambda mean, eps: mean + eps),
    norm_bug("unbiased_variance", N_("the variance divides by D − 1, not by D"), mean=divide_by_n_minus_1),
    norm_bug(
        "unbiased_deviation",
        N_("the deviation divides by D − 1, not by D, and ε is added outside of the root"),
        mean=divide_by_n_minus_1,
        root=add_eps_outside,
    ),
    norm_bug("mean_subtracted", N_("the mean is subtracted, as a LayerNorm does"), "rmsnorm", centre=subtract_mean),
    norm_bug(
        "mean_subtracted_above",
        N_("the mean is subtracted from what is divided, and not from what it is divided by"),
        "rmsnorm",
        centre=subtract_mean,
        measured=lambda x, c: x,
    ),
    norm_bug(
        "variance_for_mean_square",
        N_("it divides by the root of the variance, not of the mean square"),
        "rmsnorm",
        measured=lambda x, c: subtract_mean(x),
    ),
    norm_bug(
        "deviation_for_mean_square",
        N_("it divides by the standard deviation, with D − 1 and with ε outside of the root"),
        "rmsnorm",
        measured=lambda x, c: subtract_mean(x),
        mean=divide_by_n_minus_1,
        root=add_eps_outside,
    ),
    norm_bug("mean_kept", N_("the mean is not subtracted, as in an RMSNorm"), "layernorm", centre=identity),
    norm_bug("gain_left_out", N_("the gain is left out"), applied=without_gain),
    norm_bug("shift_left_out", N_("the shift β is left out"), "layernorm", applied=lambda y, g, b: y * g),
    norm_bug("gain_and_shift_left_out", N_("gain and shift are left out"), "layernorm", applied=without_gain_and_shift),
    norm_bug(
        "one_plus_gain",
        N_("it is multiplied by 1 + the gain, as Gemma’s norms are"),
        "rmsnorm",
        applied=lambda y, g, b: y * (1 + g),
    ),
    norm_bug(
        "norm_over_tokens",
        N_("the mean is taken over tokens, not over each one’s dimensions"),
        centre=identity,
        mean=lambda squares: squares.mean(0, keepdim=True),
    ),
    norm_bug(
        "norm_over_all",
        N_("the mean is taken over tokens and dimensions together"),
        centre=identity,
        mean=lambda squares: squares.mean(),
    ),
    norm_bug(
        "division_left_out",
        N_("the division by the root is left out"),
        "layernorm",
        root=lambda mean, eps: torch.ones_like(mean),
    ),
    norm_bug("norm_flipped", N_("the sign of the norm is flipped"), applied=lambda y, g, b: -with_gain(y, g, b)),
    norm_bug("norm_twice", N_("the norm is applied twice"), times=2),
    norm_bug("epsilon_subtracted", N_("ε is subtracted, not added"), epsilon=lambda eps, width: -eps),
    norm_bug(
        "epsilon_of_reciprocal",
        N_("ε is added to the reciprocal root"),
        root=lambda mean, eps: 1 / (mean.rsqrt() + eps),
    ),
    norm_bug(
        "epsilon_as_least",
        N_("ε is the least that the mean may be, and is not added"),
        root=lambda mean, eps: mean.clamp_min(eps).sqrt(),
    ),
    norm_bug("root_twice", N_("the root is taken twice"), root=lambda mean, eps: (mean + eps).sqrt().sqrt()),
    norm_bug(
        "multiplied_by_root",
        N_("it is multiplied by the root, not divided"),
        root=lambda mean, eps: (mean + eps).rsqrt(),
    ),
    norm_bug(
        "gain_flipped", N_("the sign of the gain is flipped"), "layernorm", applied=lambda y, g, b: with_gain(y, -g, b)
    ),
    norm_bug("gain_twice", N_("the gain is applied twice"), applied=lambda y, g, b: with_gain(y, g**2, b)),
    norm_bug(
        "gain_first", N_("the gain comes before the division"), scaled=lambda x, gain: x * gain, applied=without_gain
    ),
    norm_bug("shift_subtracted", N_("the shift β is subtracted"), "layernorm", applied=lambda y, g, b: y * g - b),
    norm_bug("shift_twice", N_("the shift β is added twice"), "layernorm", applied=lambda y, g, b: y * g + 2 * b),
    norm_bug("shift_first", N_("the shift β comes before the gain"), "layernorm", applied=lambda y, g, b: (y + b) * g),
    norm_bug(
        "mean_added",
        N_("the mean is added, not subtracted"),
        "layernorm",
        centre=lambda x: x + x.mean(-1, keepdim=True),
    ),
    # That of the final norm is a bug of its own.
    replace(norm_bug("norm_left_out", N_("the norm is left out"), **NORM_LEFT_OUT), visible_at=TAPS[:2]),
    norm_bug("only_gain", N_("the norm only multiplies by its gain"), **NO_DIVISION),
    *(
        replace(
            norm_bug(f"epsilon_{eps}", N_("ε is {epsilon}"), epsilon=lambda _eps, _width, eps=float(eps): eps),
            values=(("epsilon", number),),
        )
        for eps, number in EPSILONS.items()
    ),
)


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


def replace_linear(product: Callable[[Tensor, str, Mapping[str, Tensor]], Tensor]):
    """Return a change of the formulas that replaces the product of the map at whose output it is visible."""
    return lambda formulas, tap: replace(formulas, linears={**formulas.linears, tap: product})


def multiply_untransposed(x, name, weights):
    """Return x W instead of x Wᵀ, which only square maps allow."""
    return F.linear(x, weights[f"{name}.weight"].T, weights.get(f"{name}.bias"))


def multiply_without_bias(x, name, weights):
    """Return the product with a map's weight, without its bias."""
    return F.linear(x, weights[f"{name}.weight"])


LINEAR_BUGS = (
    KnownBug(
        "weight_transposed",
        N_("the weight is transposed: x W, not x Wᵀ"),
        "",
        tuple(MAP_NAMES),
        replace_linear(multiply_untransposed),
    ),
    KnownBug("bias_left_out", N_("the bias is left out"), "", tuple(MAP_NAMES), replace_linear(multiply_without_bias)),
)


def gelu_tanh(x):
    """Return GELU in its tanh approximation."""
    return F.gelu(x, approximate="tanh")


def change_hidden_pieces(pieces: Mapping[str, Any]):
    """Return a change of the formulas that replaces pieces of the hidden layer's formula."""
    return lambda formulas, tap: replace(formulas, hidden=replace(formulas.hidden, **pieces))


def gate_bug(name: str, text: str, first_tap: str = "", **pieces) -> KnownBug:
    """Return the bug that a gated feed-forward has these pieces."""
    first_tap = first_tap or ("ffn.gate" if "activation" in pieces else "ffn.hidden")
    return KnownBug(
        name, text, first_tap, ("ffn.hidden",), change_hidden_pieces(pieces), lambda config: config.is_gated
    )


def activation_bug(name: str, text: str, activation: Callable[[Tensor], Tensor]) -> KnownBug:
    """Return the bug that a feed-forward without a gate has this activation."""
    change = change_hidden_pieces({"activation": activation})
    return KnownBug(name, text, "ffn.hidden", ("ffn.hidden",), change, lambda config: not config.is_gated)


FEED_FORWARD_BUGS = (
    gate_bug(
        "gate_and_up_swapped",
        N_("gate and up are swapped: SiLU is taken of W₃ x"),
        "ffn.gate",
        gate_and_up=lambda gate, up: (up, gate),
    ),
    gate_bug("gate_for_up", N_("the gate multiplies itself: W₃ x is not used"), gate_and_up=lambda g, u: (g, g)),
    gate_bug(
        "up_for_gate", N_("W₃ x is its own gate: W₁ x is not used"), "ffn.gate_pre", gate_and_up=lambda g, u: (u, u)
    ),
    gate_bug("silu_of_both", N_("SiLU is taken of gate and up"), gate_and_up=lambda g, u: (g, F.silu(u))),
    gate_bug("silu_left_out", N_("SiLU is left out"), activation=lambda x: x),
    gate_bug("sigmoid_for_silu", N_("the gate is a sigmoid, not SiLU"), activation=torch.sigmoid),
    gate_bug("gelu_for_silu", N_("the gate is GELU, not SiLU"), activation=F.gelu),
    gate_bug("gelu_tanh_for_silu", N_("the gate is GELU’s approximation, not SiLU"), activation=gelu_tanh),
    gate_bug("relu_for_silu", N_("the gate is ReLU, not SiLU"), activation=torch.relu),
    gate_bug("up_left_out", N_("the gate multiplies nothing: W₃ x is left out"), joined=lambda active, other: active),
    gate_bug("gate_left_out", N_("the gate W₁ x is left out"), joined=lambda active, other: other),
    gate_bug("gate_added", N_("gate and up are added, not multiplied"), joined=lambda active, other: active + other),
    gate_bug(
        "silu_of_product", N_("SiLU is taken of the product"), gate_and_up=lambda g, u: (g * u, torch.ones_like(u))
    ),
    activation_bug("relu_for_activation", N_("the activation is ReLU"), torch.relu),
    activation_bug("relu2_for_activation", N_("the activation is ReLU²"), lambda x: torch.relu(x).square()),
    activation_bug("gelu_for_activation", N_("the activation is GELU"), F.gelu),
    activation_bug("gelu_tanh_for_activation", N_("the activation is GELU’s approximation"), gelu_tanh),
    activation_bug("silu_for_activation", N_("the activation is SiLU"), F.silu),
    activation_bug("tanh_for_activation", N_("the activation is tanh"), torch.tanh),
    activation_bug("activation_left_out", N_("the activation is left out"), lambda x: x),
)
