"""Slips in RMSNorm and LayerNorm, x / √(mean x² + ε) · g."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from explorer.language import N_
from explorer.own_module.formulas import Formulas
from explorer.own_module.norms import as_it_is, centred, with_gain
from explorer.own_module.slips.slip import Slip

TAPS = "attn_norm", "ffn_norm", "final_norm"


def total(squares: Tensor) -> Tensor:
    return squares.sum(-1, keepdim=True)


def one_less(squares: Tensor) -> Tensor:
    return squares.sum(-1, keepdim=True) / (squares.shape[-1] - 1)


def outside(mean: Tensor, eps: float) -> Tensor:
    return mean.sqrt() + eps


def without_gain(y: Tensor, gain: Tensor, shift: Tensor | None) -> Tensor:
    return y if shift is None else y + shift


def alone(y: Tensor, gain: Tensor, shift: Tensor | None) -> Tensor:
    return y


DIVIDED_BY_NOTHING = {"centre": as_it_is, "root": lambda mean, eps: torch.ones_like(mean)}
NORM_SLIPS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (  # name, words, changed pieces
    ("epsilon_outside_root", N_("ε is added outside of the root"), {"root": outside}),
    ("no_epsilon", N_("ε is left out"), {"epsilon": lambda eps, width: 0.0}),
    (
        "epsilon_of_sum",
        N_("ε is added to the sum of squares, not to their mean"),
        {"epsilon": lambda eps, width: eps / width},
    ),
    ("epsilon_squared", N_("ε is squared"), {"epsilon": lambda eps, width: eps**2}),
    ("sum_for_mean", N_("the squares are summed, and not divided by how many they are"), {"mean": total}),
    (
        "length_of_one",
        N_("each vector is brought to length 1, as F.normalize does: √D is missing, and so is ε"),
        {"mean": total, "root": lambda mean, eps: mean.sqrt().clamp_min(1e-12)},
    ),
    ("no_root", N_("the root is left out"), {"root": lambda mean, eps: mean + eps}),
    ("unbiased_variance", N_("the variance divides by D − 1, not by D"), {"mean": one_less}),
    (
        "unbiased_deviation",
        N_("the deviation divides by D − 1, not by D, and ε is added outside of the root"),
        {"mean": one_less, "root": outside},
    ),
    ("mean_subtracted", N_("the mean is subtracted, as a LayerNorm does"), {"centre": centred}),
    (
        "mean_subtracted_above",
        N_("the mean is subtracted from what is divided, and not from what it is divided by"),
        {"centre": centred, "measured": lambda x, c: x},
    ),
    (
        "variance_for_mean_square",
        N_("it divides by the root of the variance, not of the mean square"),
        {"measured": lambda x, c: centred(x)},
    ),
    (
        "deviation_for_mean_square",
        N_("it divides by the standard deviation, with D − 1 and with ε outside of the root"),
        {"measured": lambda x, c: centred(x), "mean": one_less, "root": outside},
    ),
    ("mean_kept", N_("the mean is not subtracted, as in an RMSNorm"), {"centre": as_it_is}),
    ("gain_left_out", N_("the gain is left out"), {"applied": without_gain}),
    ("shift_left_out", N_("the shift β is left out"), {"applied": lambda y, gain, shift: y * gain}),
    ("gain_and_shift_left_out", N_("gain and shift are left out"), {"applied": alone}),
    (
        "one_plus_gain",
        N_("it is multiplied by 1 + the gain, as Gemma's norms are"),
        {"applied": lambda y, gain, shift: y * (1 + gain)},
    ),
    (
        "norm_over_tokens",
        N_("the mean is taken over tokens, not over each one's dimensions"),
        {"centre": as_it_is, "mean": lambda squares: squares.mean(0, keepdim=True)},
    ),
    (
        "norm_over_all",
        N_("the mean is taken over tokens and dimensions together"),
        {"centre": as_it_is, "mean": lambda squares: squares.mean()},
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
    ("norm_left_out", N_("the norm is left out"), {**DIVIDED_BY_NOTHING, "applied": alone}),
    ("only_gain", N_("the norm only multiplies by its gain"), DIVIDED_BY_NOTHING),
)
OF_LAYERNORM = (
    *("mean_kept", "mean_added", "division_left_out", "gain_flipped", "gain_and_shift_left_out"),
    *("shift_left_out", "shift_subtracted", "shift_twice", "shift_first"),
)
OF_RMSNORM = (
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


def norm_slips() -> Iterator[Slip]:
    for name, words, pieces in NORM_SLIPS:
        kinds = ("layernorm",) * (name not in OF_RMSNORM) + ("rmsnorm",) * (name not in OF_LAYERNORM)
        taps = TAPS[:2] if name == "norm_left_out" else TAPS  # the last is a slip of its own
        yield Slip(name, words, "", taps, changing(pieces), lambda config, kinds=kinds: config.norm in kinds)
    for eps, words in OTHER_EPSILON.items():
        name = f"epsilon_{eps:.0e}".replace("-0", "-")
        yield Slip(name, words, "", TAPS, changing({"epsilon": lambda _eps, _width, eps=eps: eps}))


def changing(pieces: Mapping[str, Any]):
    def change(formulas: Formulas, tap: str) -> Formulas:
        name = tap.split(".")[-1]
        return formulas.with_norm(name, formulas.norms[name].but(**pieces))

    return change
