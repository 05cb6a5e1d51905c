"""What chance would give, beside what heads score."""

import numpy as np

from explorer.analysis.chance import Chance
from explorer.explain.notation import number
from explorer.language import N_, _, look_up

WHY_NONE = N_("no token of this prompt occurs twice")


def told(by_chance: Chance, exceeds: np.ndarray) -> list[list[str]]:
    """What hovering over each head tells of chance."""
    even = _("attention spread evenly would score {even}", even=number(by_chance.even))
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
