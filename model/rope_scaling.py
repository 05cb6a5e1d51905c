"""How rotary positions are slowed."""

import math
from dataclasses import dataclass

from model.config_checks import is_number
from model.errors import ModelError

ROPE_SCALINGS = ("linear", "ntk", "llama3")


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
        if self.kind not in ROPE_SCALINGS:
            raise ModelError(
                "the kind of RoPE scaling must be one of {known}, got {got!r}",
                known=", ".join(ROPE_SCALINGS),
                got=self.kind,
            )
        if not is_number(self.factor) or not 1 <= self.factor < math.inf:
            raise ModelError("the factor of RoPE scaling must be a number of at least 1, got {got!r}", got=self.factor)
        low, high = self.low_frequency_factor, self.high_frequency_factor
        if not (is_number(low) and is_number(high) and 0 < low < high):
            raise ModelError(
                "low_frequency_factor must be positive and below high_frequency_factor, got {low!r} and {high!r}",
                low=low,
                high=high,
            )
        length = self.original_context_length
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise ModelError(
                "{name} must be a positive integer, got {got!r}", name="original_context_length", got=length
            )
