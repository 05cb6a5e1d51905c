"""Glossary entries."""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.state.generation_settings import GenerationSettings
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import ResultNotReadyError
from explorer.tracing.trace import Trace
from explorer.translations import _, translate


@dataclass(frozen=True)
class GlossaryExampleContext:
    """The context of an example: a run, the selection, the sampling settings, and the run compared with, if any.

    Attributes:
        start: number of tokens before the trace's first; random numbers are indexed by position in the whole text.
    """

    trace: Trace
    selection: Selection
    settings: GenerationSettings
    comparison: Comparison | None = None
    start: int = 0

    @property
    def token(self) -> str:
        """The selected token's text."""
        return self.trace.tokens[self.selection.query]


@dataclass(frozen=True)
class GlossaryEntry:
    """A term and its definition, both translated when displayed.

    Attributes:
        forms: as the page writes it; the first is in docs/glossary.md.
        meaning: a sentence without its full stop.
        example: returns a sentence with the run's numbers.
    """

    forms: tuple[str, ...]
    meaning: str
    example: Callable[[GlossaryExampleContext], str]

    @property
    def name(self) -> str:
        return self.forms[0]

    def define(self, context: GlossaryExampleContext) -> str:
        """Return the term's meaning with an example from the run; without it if a result is not computed yet."""
        try:
            example = self.example(context)
        except ResultNotReadyError:  # its figure has the button
            example = ""
        return _("{meaning}. {here}", meaning=translate(self.meaning), here=example).rstrip()
