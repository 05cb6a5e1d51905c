"""A term of art, explained."""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.language import _, look_up
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import NotYet
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Look:
    """What is looked at: a run, where in it, how the next token would be drawn, and what the run is compared with."""

    trace: Trace
    selection: Selection
    settings: GenerationSettings
    comparison: Comparison | None = None

    @property
    def token(self) -> str:
        """The chosen one's text."""
        return self.trace.tokens[self.selection.query]


@dataclass(frozen=True)
class Entry:
    """Its forms and its meaning are looked up when they are said.

    Attributes:
        forms: how the page writes it, the first in the README's table.
        meaning: in a sentence, without its end.
        here: a sentence on it with the run's own numbers.
    """

    forms: tuple[str, ...]
    meaning: str
    here: Callable[[Look], str]

    @property
    def name(self) -> str:
        return self.forms[0]

    def told(self, look: Look) -> str:
        try:
            here = self.here(look)
        except NotYet:  # its picture has the button
            here = ""
        return _("{meaning}. {here}", meaning=look_up(self.meaning), here=here).rstrip()
