"""Slips in RMSNorm and LayerNorm, x / √(mean x² + ε) · g."""

from collections.abc import Iterator

import torch
from torch import Tensor

from explorer.language import N_
from explorer.own_module.formulas import Formulas, Norm
from explorer.own_module.slips.slip import Slip

TAPS = "attn_norm", "ffn_norm", "final_norm"


def mean_square(x: Tensor) -> Tensor:
    return x.square().mean(-1, keepdim=True)


def shifted(y: Tensor, gain: Tensor, shift: Tensor | None) -> Tensor:
    return y * gain if shift is None else y * gain + shift


def centred(x: Tensor, shift: Tensor | None) -> Tensor:
    """What a LayerNorm takes the mean square of; a norm with a shift is one."""
    return x if shift is None else x - x.mean(-1, keepdim=True)


def divided(divisor) -> Norm:
    """A norm that divides by something else: (centred x, ε) -> that."""

    def norm(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
        c = centred(x, shift)
        return shifted(c / divisor(c, eps), gain, shift)

    return norm


def mean_subtracted(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    c = x - x.mean(-1, keepdim=True)
    return shifted(c * torch.rsqrt(mean_square(c) + eps), gain, shift)


def mean_kept(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    return shifted(x * torch.rsqrt(mean_square(x) + eps), gain, shift)


def mean_subtracted_above(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    return shifted((x - x.mean(-1, keepdim=True)) * torch.rsqrt(mean_square(x) + eps), gain, shift)


def without_gain(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    c = centred(x, shift)
    y = c * torch.rsqrt(mean_square(c) + eps)
    return y if shift is None else y + shift


def without_shift(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    c = centred(x, shift)
    return c * torch.rsqrt(mean_square(c) + eps) * gain


def plain(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    c = centred(x, shift)
    return c * torch.rsqrt(mean_square(c) + eps)


def one_plus_gain(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    return without_gain(x, gain, None, eps) * (1 + gain)


def over_tokens(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    return shifted(x * torch.rsqrt(x.square().mean(0, keepdim=True) + eps), gain, shift)


def over_all(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    return shifted(x * torch.rsqrt(x.square().mean() + eps), gain, shift)


def as_it_is(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    return x


def only_gain(x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
    return shifted(x, gain, shift)


NORM_SLIPS: tuple[tuple[str, str, Norm], ...] = (
    ("epsilon_outside_root", N_("ε is added outside of the root"), divided(lambda x, eps: mean_square(x).sqrt() + eps)),
    ("no_epsilon", N_("ε is left out"), divided(lambda x, eps: mean_square(x).sqrt())),
    (
        "epsilon_of_sum",
        N_("ε is added to the sum of squares, not to their mean"),
        divided(lambda x, eps: ((x.square().sum(-1, keepdim=True) + eps) / x.shape[-1]).sqrt()),
    ),
    ("epsilon_squared", N_("ε is squared"), divided(lambda x, eps: (mean_square(x) + eps**2).sqrt())),
    (
        "sum_for_mean",
        N_("the squares are summed, and not divided by how many they are"),
        divided(lambda x, eps: (x.square().sum(-1, keepdim=True) + eps).sqrt()),
    ),
    ("no_root", N_("the root is left out"), divided(lambda x, eps: mean_square(x) + eps)),
    (
        "unbiased_variance",
        N_("the variance divides by D − 1, not by D"),
        divided(lambda x, eps: (x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1) + eps).sqrt()),
    ),
    (
        "unbiased_deviation",
        N_("the deviation divides by D − 1, not by D, and ε is added outside of the root"),
        divided(lambda x, eps: (x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1)).sqrt() + eps),
    ),
    ("mean_subtracted", N_("the mean is subtracted, as a LayerNorm does"), mean_subtracted),
    (
        "mean_subtracted_above",
        N_("the mean is subtracted from what is divided, and not from what it is divided by"),
        mean_subtracted_above,
    ),
    ("mean_kept", N_("the mean is not subtracted, as in an RMSNorm"), mean_kept),
    ("gain_left_out", N_("the gain is left out"), without_gain),
    ("shift_left_out", N_("the shift β is left out"), without_shift),
    ("gain_and_shift_left_out", N_("gain and shift are left out"), plain),
    ("one_plus_gain", N_("it is multiplied by 1 + the gain, as Gemma's norms are"), one_plus_gain),
    ("norm_over_tokens", N_("the mean is taken over tokens, not over each one's dimensions"), over_tokens),
    ("norm_over_all", N_("the mean is taken over tokens and dimensions together"), over_all),
    ("norm_left_out", N_("the norm is left out"), as_it_is),
    ("only_gain", N_("the norm only multiplies by its gain"), only_gain),
)


OF_LAYERNORM = "mean_kept", "shift_left_out", "gain_and_shift_left_out"
OF_RMSNORM = "mean_subtracted", "mean_subtracted_above", "one_plus_gain"


def norm_slips() -> Iterator[Slip]:
    for name, words, norm in NORM_SLIPS:
        kinds = ("layernorm",) * (name not in OF_RMSNORM) + ("rmsnorm",) * (name not in OF_LAYERNORM)
        taps = TAPS[:2] if name == "norm_left_out" else TAPS  # the last is a slip of its own

        def change(formulas: Formulas, tap: str, norm: Norm = norm) -> Formulas:
            return formulas.with_norm(tap.split(".")[-1], norm)

        yield Slip(name, words, "", taps, change, lambda config, kinds=kinds: config.norm in kinds)
    for eps in (1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-12):

        def other(formulas: Formulas, tap: str, eps: float = eps) -> Formulas:
            norm = formulas.norms[tap.split(".")[-1]]
            return formulas.with_norm(tap.split(".")[-1], lambda x, gain, shift, _eps: norm(x, gain, shift, eps))

        yield Slip(f"epsilon_{eps:.0e}".replace("-0", "-"), OTHER_EPSILON[eps], "", TAPS, other)


OTHER_EPSILON = {
    1e-3: N_("ε is 0.001"),
    1e-4: N_("ε is 0.0001"),
    1e-5: N_("ε is 0.00001"),
    1e-6: N_("ε is 0.000001"),
    1e-8: N_("ε is 0.00000001"),
    1e-12: N_("ε is 10⁻¹²"),
}
