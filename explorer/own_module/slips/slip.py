"""What a slip is."""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.own_module.formulas import Formulas
from model.config import ModelConfig


@dataclass(frozen=True)
class Slip:
    """A mistake that people make: a change of one of the reference's formulas.

    Attributes:
        name: of it, in one word.
        words: what it is, looked up when they are said.
        values: what is filled into the words, looked up likewise.
        place: the first tap that it changes, without its layer, or what it is around the sublayers (see `wiring`); ""
            for that at which it is looked for, of norms.
        shows: at which taps it shows first, of those that a module's parts give; or what these are around the
            sublayers.
        change: (formulas, the tap at which it shows) -> the formulas with the slip.
        of: whether a model of a config can have it.
    """

    name: str
    words: str
    place: str
    shows: tuple[str, ...]
    change: Callable[[Formulas, str], Formulas]
    of: Callable[[ModelConfig], bool] = lambda config: True
    values: tuple[tuple[str, str], ...] = ()
