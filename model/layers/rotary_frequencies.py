"""Frequencies and attention factors of rotary embeddings, with RoPE scaling for longer contexts."""

import math

import torch
from torch import Tensor

from model.rope_scaling import RopeScaling


def rotary_frequencies(
    theta: float, d_head: int, scaling: RopeScaling | None = None, rotary_dim: int | None = None
) -> Tensor:
    """Return ωᵢ = θ⁻²ⁱᐟʳ, slowed by `scaling`: radians per position of every pair, (d_head / 2,) in float64.

    r = `rotary_dim` is the number of rotated dimensions; None means all. The pairs after the first r / 2 are not
    rotated: ω = 0 (GPT-NeoX: Black et al. 2022, §2.1.1).
    """
    rotated = scaled_frequencies(theta, rotary_dim or d_head, scaling)
    return torch.cat((rotated, rotated.new_zeros(d_head // 2 - len(rotated))))


def rotary_attention_factors(d_head: int, scaling: RopeScaling | None = None, rotary_dim: int | None = None) -> Tensor:
    """Return the factor that multiplies each rotated pair, (d_head / 2,) in float64: 1 for pairs not rotated."""
    scales = torch.ones(d_head // 2, dtype=torch.float64, device="cpu")  # not every device has float64
    scales[: (rotary_dim or d_head) // 2] = scaling.attention_factor if scaling else 1.0
    return scales


def scaled_frequencies(theta: float, d_head: int, scaling: RopeScaling | None) -> Tensor:
    """Return ωᵢ = θ⁻²ⁱᐟᵈ, slowed by `scaling`, where all d = `d_head` dimensions are rotated."""
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
        unscaled_fraction = 1 - yarn_ramp(theta, d_head, scaling)
    else:
        turns = scaling.original_context_length * frequencies / (2 * math.pi)
        unscaled_fraction = ((turns - low) / (high - low)).clamp(0, 1)  # 1 for the fast, 0 for the slow
    return unscaled_fraction * frequencies + (1 - unscaled_fraction) * frequencies / scaling.factor


def yarn_ramp(theta: float, d_head: int, scaling: RopeScaling) -> Tensor:
    """Return YaRN's ramp (d_head / 2,): 0 at the pair of β_fast turns, 1 at the pair of β_slow turns.

    Turns are counted over the original context. Peng et al. 2023, §3.2, but linear in the pair's index instead of
    its wavelength, as in their code.
    """

    def pair_index(turns: float) -> float:
        return d_head * math.log(scaling.original_context_length / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first, last = pair_index(scaling.high_frequency_factor), pair_index(scaling.low_frequency_factor)
    if scaling.rounds_ramp:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, d_head - 1)
    pairs = torch.arange(d_head // 2, dtype=torch.float64, device="cpu")
    return ((pairs - first) / (last - first or 0.001)).clamp(0, 1)  # never divided by 0
