"""Settings of text generation, and the limits per user of a private and of a public server."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from explorer.errors import UserError
from explorer.translations import _

MAX_SLIDER_TOP_K = 100  # end of the page's slider; larger numbers can be typed (static/page_actions.js)
RANGES = {
    "temperature": (0, 2),
    "top_k": (0, 1_000_000),
    "max_new_tokens": (1, 512),
    "seed": (0, 2**32 - 1),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "repetition_penalty": (1, 2),
}
MAX_STOP_CHARS = 64


@dataclass(frozen=True)
class GenerationSettings:
    """The settings of the generation panel.

    Attributes:
        temperature: 0 to 2; 0 always takes the likeliest token.
        top_k: number of likeliest tokens kept; 0 keeps all.
        max_new_tokens: tokens that Generate adds.
        seed: of the random numbers.
        top_p: total probability of the likeliest tokens kept; 1 keeps all.
        min_p: smallest probability kept, relative to the likeliest token's; 0 keeps all.
        repetition_penalty: factor by which the logits of earlier tokens are reduced; 1 leaves them.
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
        """Parse settings from an untrusted mapping, clamped to their ranges; invalid ones get their defaults."""
        settings = {}
        for name, (low, high) in RANGES.items():
            try:
                value = float(values[name])
            except (KeyError, TypeError, ValueError, OverflowError):
                continue
            if not math.isnan(value):
                settings[name] = type(getattr(cls, name))(max(low, min(high, value)))
        if isinstance(stop := values.get("stop_strings"), str):
            settings["stop_strings"] = stop[:MAX_STOP_CHARS]
        return cls(**settings)

    def validate(self) -> "GenerationSettings":
        """Return these settings if they are valid.

        Raises:
            UserError: one is outside its range or of another type.
        """
        for name, (low, high) in RANGES.items():
            value, whole = getattr(self, name), isinstance(getattr(type(self), name), int)
            is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
            if not is_number or not low <= value <= high:
                wrong = {"name": name, "low": low, "high": high, "got": value}
                if whole:
                    raise UserError(_("{name} must be {low} to {high}, got {got!r} (whole numbers only)", **wrong))
                raise UserError(_("{name} must be {low} to {high}, got {got!r}", **wrong))
        if not isinstance(stop := self.stop_strings, str) or len(stop) > MAX_STOP_CHARS:
            raise UserError(
                _(
                    "stop_strings must be a text of at most {most} characters, got {got!r}",
                    most=MAX_STOP_CHARS,
                    got=stop,
                )
            )
        return self

    @property
    def sampling(self) -> dict[str, Any]:
        """The settings of sampling, as arguments of `generate`."""
        return {name: value for name, value in asdict(self).items() if name not in ("max_new_tokens", "stop_strings")}

    def as_dict(self) -> dict[str, Any]:
        """Return all settings, as arguments of `generate`, which also needs a tokenizer if there are `stop_strings`."""
        return asdict(self)


@dataclass(frozen=True)
class UserLimits:
    """Limits per user.

    Attributes:
        tokens: that one press of a button generates.
        seconds: of waiting and computing for it.
        prompts: of one user in a minute.
        request_bytes: of one request.
        rooms: for a class, that one user opens in an hour.
        people: in a room.
    """

    tokens: int = RANGES["max_new_tokens"][1]
    seconds: float = math.inf
    prompts: float = math.inf
    request_bytes: int = 1 << 20  # a state takes some 100 kB, and a prompt need not be a book
    rooms: float = math.inf
    people: int = 400


NO_LIMITS = UserLimits()
PUBLIC_LIMITS = UserLimits(tokens=120, seconds=20.0, prompts=20, request_bytes=256 << 10, rooms=6, people=120)
