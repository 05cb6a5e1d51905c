"""How the next token is drawn."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

LIMITS = {"temperature": (0, 2), "top_k": (0, 1_000_000), "max_new_tokens": (1, 512), "seed": (0, 2**32 - 1)}


@dataclass(frozen=True)
class GenerationSettings:
    """What the generation panel's sliders say.

    Attributes:
        temperature: 0 to 2; 0 always takes the likeliest token.
        top_k: number of likeliest tokens kept; 0 keeps all.
        max_new_tokens: tokens that Generate writes.
        seed: of the random numbers.
    """

    temperature: float = 0.8
    top_k: int = 40
    max_new_tokens: int = 60
    seed: int = 0

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "GenerationSettings":
        """The settings in a mapping that anybody may have written, brought into their limits; defaults for nonsense."""
        known = {}
        for name, (low, high) in LIMITS.items():
            try:
                value = float(values[name])
            except (KeyError, TypeError, ValueError, OverflowError):
                continue
            if not math.isnan(value):
                known[name] = type(getattr(cls, name))(max(low, min(high, value)))
        return cls(**known)

    def checked(self) -> "GenerationSettings":
        """These settings; ValueError where one is outside its limits or of another type."""
        for name, (low, high) in LIMITS.items():
            value, whole = getattr(self, name), isinstance(getattr(type(self), name), int)
            if not isinstance(value, int if whole else int | float) or not low <= value <= high:
                raise ValueError(f"{name} must be {low} to {high}, got {value!r}{' (whole numbers only)' * whole}")
        return self

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
