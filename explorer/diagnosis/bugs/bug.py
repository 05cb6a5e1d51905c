"""`KnownBug`, an entry in the catalogue of common implementation bugs."""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.diagnosis.reference_formulas import Formulas
from model.config import ModelConfig


@dataclass(frozen=True)
class KnownBug:
    """A common implementation bug: a change to one of the reference's formulas.

    Attributes:
        name: an identifier.
        text: a description, translated when displayed.
        values: values of the placeholders in `text`, translated likewise.
        first_tap: the first tap that it changes, without the layer, or its role in the block (see `dataflow`); "" for
            the tap at which it is searched.
        visible_at: recorded taps, or their roles, at which it can first be visible.
        change: (formulas, the tap at which it is visible) -> the formulas with the bug.
        applies_to: whether a model of a config can have it.
    """

    name: str
    text: str
    first_tap: str
    visible_at: tuple[str, ...]
    change: Callable[[Formulas, str], Formulas]
    applies_to: Callable[[ModelConfig], bool] = lambda config: True
    values: tuple[tuple[str, str], ...] = ()
