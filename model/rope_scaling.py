"""Scaling of rotary position embeddings for longer contexts."""

import math
from dataclasses import dataclass

from model.config_checks import is_number
from model.errors import ModelError

ROPE_SCALINGS = ("linear", "ntk", "llama3", "yarn", "longrope")


@dataclass(frozen=True, kw_only=True)
class RopeScaling:
    """Scaling of rotary frequencies, so that later positions rotate no further than those in training.

    Attributes:
        kind: "linear" divides all by `factor`, as if positions were (Chen et al. 2023); "ntk" enlarges the base so
            that the slowest is divided by `factor` and the fastest stays (bloc97 2023, "NTK-aware"); "llama3"
            leaves the fast, divides the slow by `factor` and interpolates between them (Llama 3.1); "yarn" does so
            with a ramp over the pairs' indices instead of their speeds (Peng et al. 2023); "longrope" divides each
            pair's by a factor of its own, from a search (Ding et al. 2024).
        factor: s ≥ 1, ratio of the longer context to the original one.
        low_frequency_factor: llama3, yarn (β_slow): slow pairs make fewer turns than this in the original context.
        high_frequency_factor: llama3, yarn (β_fast): fast pairs make more turns than this in the original context.
        original_context_length: llama3, yarn, longrope: positions in training.
        rounds_ramp: yarn: whether its ramp begins and ends at whole pairs.
        pair_factors: longrope: one for each rotated pair.
        attention_factor: yarn, longrope: factor of the rotated dimensions of queries and keys.

    Raises:
        ValueError: a field is out of its range.
    """

    kind: str
    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context_length: int = 8192
    rounds_ramp: bool = True
    pair_factors: tuple[float, ...] = ()
    attention_factor: float = 1.0

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
        if not isinstance(self.rounds_ramp, bool):
            raise ModelError("{name} must be true or false, got {got!r}", name="rounds_ramp", got=self.rounds_ramp)
        if not _is_positive(self.attention_factor):
            raise ModelError(
                "{name} must be a positive number, got {got!r}", name="attention_factor", got=self.attention_factor
            )
        factors = self.pair_factors
        if not isinstance(factors, tuple) or not all(map(_is_positive, factors)):
            raise ModelError("pair_factors must be positive numbers, one a pair, got {got!r}", got=factors)
        if bool(factors) != (self.kind == "longrope"):
            raise ModelError("pair_factors belong to longrope alone, which needs them, got {got!r}", got=factors)


def _is_positive(value: object) -> bool:
    return is_number(value) and 0 < value < math.inf
