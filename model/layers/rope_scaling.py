"""Rotary frequencies for contexts longer than a model was trained on."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

KINDS = ("linear", "ntk", "llama3")


@dataclass(frozen=True, kw_only=True)
class RopeScaling:
    """How to slow rotary frequencies, so that later positions turn no further than the trained ones did.

    Attributes:
        kind: "linear" divides all by `factor`, as if positions were (Chen et al. 2023); "ntk" enlarges the base so that
            the slowest is divided by `factor` and the fastest stays (bloc97 2023, "NTK-aware"); "llama3" leaves the
            fast, divides the slow by `factor` and goes over from one to the other in between (Llama 3.1).
        factor: s ≥ 1, how many times longer contexts become.
        low_frequency_factor: llama3: slow are those that turn fewer times than this in the original context.
        high_frequency_factor: llama3: fast are those that turn more times than this in the original context.
        original_context_length: llama3: positions in training.

    Raises:
        ValueError: a field is out of its range.
    """

    kind: str
    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context_length: int = 8192

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"the kind of RoPE scaling must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if not is_number(self.factor) or not 1 <= self.factor < math.inf:
            raise ValueError(f"the factor of RoPE scaling must be a number of at least 1, got {self.factor!r}")
        low, high = self.low_frequency_factor, self.high_frequency_factor
        if not (is_number(low) and is_number(high) and 0 < low < high):
            raise ValueError(
                f"low_frequency_factor must be positive and below high_frequency_factor, got {low!r} and {high!r}"
            )
        length = self.original_context_length
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise ValueError(f"original_context_length must be a positive integer, got {length!r}")


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def rotary_frequencies(theta: float, d_head: int, scaling: RopeScaling | None = None) -> Tensor:
    """ωᵢ = θ⁻²ⁱᐟᵈ, slowed by `scaling`: radians a position for every pair, (d_head / 2,) in float64."""
    exponents = torch.arange(0, d_head, 2, dtype=torch.float64, device="cpu") / d_head  # not every device has float64
    frequencies = theta**-exponents
    if scaling is None:
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    if scaling.kind == "ntk":
        last = max(exponents[-1].item(), 1 / d_head)  # of a single pair: only its speed 1, which stays
        return (theta * scaling.factor ** (1 / last)) ** -exponents
    turns = scaling.original_context_length * frequencies / (2 * math.pi)
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    kept = ((turns - low) / (high - low)).clamp(0, 1)  # 1 for the fast, 0 for the slow
    return kept * frequencies + (1 - kept) * frequencies / scaling.factor
