"""Rotary frequencies for contexts longer than a model was trained on."""

import math

import torch
from torch import Tensor

from model.rope_scaling import RopeScaling


def rotary_frequencies(
    theta: float, d_head: int, scaling: RopeScaling | None = None, rotary_dim: int | None = None
) -> Tensor:
    """ωᵢ = θ⁻²ⁱᐟʳ, slowed by `scaling`: radians a position for every pair, (d_head / 2,) in float64.

    Of the r = `rotary_dim` dimensions that turn, all where it is None; the pairs after the first r / 2 stand still,
    ω = 0 (GPT-NeoX: Black et al. 2022, §2.1.1).
    """
    turning = slowed_frequencies(theta, rotary_dim or d_head, scaling)
    return torch.cat((turning, turning.new_zeros(d_head // 2 - len(turning))))


def rotary_scales(d_head: int, scaling: RopeScaling | None = None, rotary_dim: int | None = None) -> Tensor:
    """What each pair is multiplied by as it turns, (d_head / 2,) in float64: 1 for pairs that stand still."""
    scales = torch.ones(d_head // 2, dtype=torch.float64, device="cpu")  # not every device has float64
    scales[: (rotary_dim or d_head) // 2] = scaling.attention_factor if scaling else 1.0
    return scales


def slowed_frequencies(theta: float, d_head: int, scaling: RopeScaling | None) -> Tensor:
    """The same where all dimensions turn."""
    exponents = torch.arange(0, d_head, 2, dtype=torch.float64, device="cpu") / d_head
    frequencies = theta**-exponents
    if scaling is None:
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    if scaling.kind == "ntk":
        last = max(d_head - 2, 1) / d_head  # the last exponent; of a single pair any will do: its speed 1 stays
        return (theta * scaling.factor ** (1 / last)) ** -exponents
    if scaling.kind == "longrope":
        return frequencies / torch.tensor(scaling.pair_factors, dtype=torch.float64, device="cpu")
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    if scaling.kind == "yarn":
        kept = 1 - yarn_ramp(theta, d_head, scaling)
    else:
        turns = scaling.original_context_length * frequencies / (2 * math.pi)
        kept = ((turns - low) / (high - low)).clamp(0, 1)  # 1 for the fast, 0 for the slow
    return kept * frequencies + (1 - kept) * frequencies / scaling.factor


def yarn_ramp(theta: float, d_head: int, scaling: RopeScaling) -> Tensor:
    """(d_head / 2,) from 0 at the pair that turns β_fast times in the original context to 1 at the one that turns
    β_slow times (Peng et al. 2023, §3.2, with the pair in the place of its wavelength, as its code has it)."""

    def pair(turns: float) -> float:
        return d_head * math.log(scaling.original_context_length / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first, last = pair(scaling.high_frequency_factor), pair(scaling.low_frequency_factor)
    if scaling.rounds_ramp:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, d_head - 1)
    pairs = torch.arange(d_head // 2, dtype=torch.float64, device="cpu")
    return ((pairs - first) / (last - first or 0.001)).clamp(0, 1)  # never divided by 0
