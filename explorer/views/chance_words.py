"""What chance would give, beside what heads score."""

import numpy as np

from explorer.analysis.chance import Chance
from explorer.explain.notation import number
from explorer.language import N_, _, look_up

WHY_NONE = N_("no token of this prompt occurs twice")


def evenly(by_chance: Chance) -> str:
    """What heads would score that look at all that they see alike; of layers that see different tokens from what to
    what."""
    least, most = number(by_chance.even.min()), number(by_chance.even.max())
    return least if least == most else _("{least} to {most}", least=least, most=most)


def told(by_chance: Chance, exceeds: np.ndarray) -> list[list[str]]:
    """What hovering over each head tells of chance."""
    even = _("attention spread evenly would have {even}", even=evenly(by_chance))
    if by_chance.within is None:
        return [[even] * exceeds.shape[1]] * len(exceeds)
    return [
        [
            look_up(MORE if more else MAY_BE_CHANCE, even=even, most=number(most))
            for most, more in zip(*row, strict=True)
        ]
        for row in zip(by_chance.within, exceeds, strict=True)
    ]


MORE = N_(
    "{even};<br>weights as sharp as this head’s, but anywhere,<br>stay within {most} in 19 of 20 tries: more than "
    "chance"
)
MAY_BE_CHANCE = N_(
    "{even};<br>weights as sharp as this head’s, but anywhere,<br>stay within {most} in 19 of 20 tries: this may be "
    "chance"
)
