"""How the next token is drawn."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from explorer.language import _
from explorer.state.errors import UserError

RANGES = {
    "temperature": (0, 2),
    "top_k": (0, 1_000_000),
    "max_new_tokens": (1, 512),
    "seed": (0, 2**32 - 1),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "repetition_penalty": (1, 2),
}
MOST_STOP_CHARACTERS = 64


@dataclass(frozen=True)
class GenerationSettings:
    """What the generation panel's sliders say.

    Attributes:
        temperature: 0 to 2; 0 always takes the likeliest token.
        top_k: number of likeliest tokens kept; 0 keeps all.
        max_new_tokens: tokens that Generate writes.
        seed: of the random numbers.
        top_p: probability that the likeliest tokens kept have together; 1 keeps all.
        min_p: how many times as likely as the likeliest token one must be to be kept; 0 keeps all.
        repetition_penalty: how much less is made of the logits of tokens that were there before; 1 leaves them.
        stop_strings: a text after which to stop; none if empty.
    """

    temperature: float = 0.8
    top_k: int = 40
    max_new_tokens: int = 60
    seed: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    stop_strings: str = ""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "GenerationSettings":
        """The settings in a mapping that anybody may have written, brought into their ranges; defaults for nonsense."""
        known = {}
        for name, (low, high) in RANGES.items():
            try:
                value = float(values[name])
            except (KeyError, TypeError, ValueError, OverflowError):
                continue
            if not math.isnan(value):
                known[name] = type(getattr(cls, name))(max(low, min(high, value)))
        if isinstance(stop := values.get("stop_strings"), str):
            known["stop_strings"] = stop[:MOST_STOP_CHARACTERS]
        return cls(**known)

    def checked(self) -> "GenerationSettings":
        """These settings; UserError where one is outside its range or of another type."""
        for name, (low, high) in RANGES.items():
            value, whole = getattr(self, name), isinstance(getattr(type(self), name), int)
            is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
            if not is_number or not low <= value <= high:
                wrong = {"name": name, "low": low, "high": high, "got": value}
                if whole:
                    raise UserError(_("{name} must be {low} to {high}, got {got!r} (whole numbers only)", **wrong))
                raise UserError(_("{name} must be {low} to {high}, got {got!r}", **wrong))
        if not isinstance(stop := self.stop_strings, str) or len(stop) > MOST_STOP_CHARACTERS:
            raise UserError(
                _(
                    "stop_strings must be a text of at most {most} characters, got {got!r}",
                    most=MOST_STOP_CHARACTERS,
                    got=stop,
                )
            )
        return self

    @property
    def sampling(self) -> dict[str, Any]:
        """What each token is drawn by, as arguments of `generate`."""
        return {name: value for name, value in asdict(self).items() if name not in ("max_new_tokens", "stop_strings")}

    def as_dict(self) -> dict[str, Any]:
        """Also the arguments of `generate`, which needs a tokenizer, too, if there are `stop_strings`."""
        return asdict(self)
