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


def slowed_frequencies(theta: float, d_head: int, scaling: RopeScaling | None) -> Tensor:
    """The same where all dimensions turn."""
    exponents = torch.arange(0, d_head, 2, dtype=torch.float64, device="cpu") / d_head  # not every device has float64
    frequencies = theta**-exponents
    if scaling is None:
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    if scaling.kind == "ntk":
        last = max(d_head - 2, 1) / d_head  # the last exponent; of a single pair any will do: its speed 1 stays
        return (theta * scaling.factor ** (1 / last)) ** -exponents
    turns = scaling.original_context_length * frequencies / (2 * math.pi)
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    kept = ((turns - low) / (high - low)).clamp(0, 1)  # 1 for the fast, 0 for the slow
    return kept * frequencies + (1 - kept) * frequencies / scaling.factor
