"""A view of a run, looked at in one place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from explorer.language import _, look_up
from explorer.state.interventions import Recipe
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import Job, NotYet
from explorer.tracing.models import ModelGone
from explorer.tracing.runs import Runs
from explorer.tracing.trace import Trace
from explorer.views import VIEW_NAMED
from explorer.views.checks import Mark, both
from explorer.views.choices import Choice, choices
from explorer.views.two_runs.bases import bases_told
from explorer.views.two_runs.difference import Incomparable
from explorer.views.two_runs.picture import Instead, Look, picture_of_two
from explorer.views.two_runs.selection import selection_in_other
from explorer.views.view import Panel, View
from explorer.views.what_if import WhatIf, offered
from explorer.web.answers.told import of_each


@dataclass(frozen=True)
class OpenView:
    """What a view shows of a run at a selection that exists in it; nothing is drawn before it is asked for.

    Where the view does not apply to the model its words say why, and its panels are empty.

    Attributes:
        lm: the models that ran, so that they are there as long as something is drawn: traces do not keep them.
        comparison: with another run, or of a changed one with itself without the changes; None with neither.
        has_other: whether that is a run that somebody chose, which pictures show by itself, too.
    """

    view: View
    trace: Trace
    selection: Selection
    lm: Any = field(default=None, repr=False)
    comparison: Comparison | None = None
    has_other: bool = False

    @property
    def shown(self) -> str:
        """Which of two runs its pictures show, or that they show the difference."""
        return self.selection.shown if self.has_other else "a"

    @cached_property
    def looks(self) -> tuple[Look, ...]:
        """The run, and the other where there is one, each with where it is looked at."""
        first = self.trace, self.selection
        if not self.has_other:
            return (first,)
        return first, (self.comparison.other, selection_in_other(self.comparison, self.selection))

    @property
    def told(self) -> tuple[Look, ...]:
        """Those of which words, numbers and marks are told."""
        return {"a": self.looks[:1], "b": self.looks[1:]}.get(self.shown, self.looks)

    @property
    def is_alone(self) -> bool:
        """Whether there are no two runs for the view to compare."""
        two = self.comparison
        if two is None or not self.view.of_two_prompts:
            return two is None
        return two.trace.model == two.other.model and two.prompt_ids[0] == two.prompt_ids[1]

    def applies_to(self, trace: Trace) -> bool:
        return self.view.applies_to(trace)

    @property
    def words(self) -> str:
        missing = [trace for trace, _selection in self.told if not self.applies_to(trace)]
        if missing:
            return self.view.why_not(missing[0])
        subtracts = self.has_other and (self.view.compares or self.shown == "difference")
        bases = bases_told(self.comparison) if subtracts else ""
        return f"{look_up(self.view.words)} {bases}".rstrip()

    @property
    def formula(self) -> str:
        if self.view.compares:
            if self.is_alone:
                return look_up(self.view.alone)
            return self.view.formula(self.comparison, self.selection)
        try:
            found = [self.view.formula(*look) if self.applies_to(look[0]) else "" for look in self.told]
        except ModelGone as gone:
            return lacking(gone)
        except NotYet:  # the picture that it is of has the button
            return ""
        return of_each(found)

    def written(self, settings: GenerationSettings) -> str:
        """What is written on from the run, or from both."""
        return known(lambda: self._written(settings), "")

    def _written(self, settings: GenerationSettings) -> str:
        return of_each([self.view.written(*look, settings) if self.applies_to(look[0]) else "" for look in self.told])

    @property
    def recipe(self) -> Recipe | None:
        """The direction in the stream that the view is about."""
        return (
            self.view.recipe(self.trace, self.selection) if self.view.recipe and self.applies_to(self.trace) else None
        )

    @property
    def in_full(self) -> tuple[str, dict[str, Any]] | None:
        """Where the full page goes further than a step of the simple one."""
        if not (self.view.in_full and self.applies_to(self.trace)):
            return None
        return known(lambda: self.view.in_full(self.trace, self.selection), None)

    @property
    def choices(self) -> list[Choice]:
        if not self.applies_to(self.trace) or (self.view.compares and self.is_alone):
            return []
        each = (known(lambda name=name: choices((name,), *self.looks[0]), []) for name in self.view.controls)
        return [choice for found in each for choice in found]

    @property
    def what_ifs(self) -> list[tuple[WhatIf, float]]:
        two = self.comparison if self.has_other else None
        return known(lambda: offered(self.view.what_ifs, self.trace, self.selection, two), [])

    def panels(self, newly: bool) -> Sequence[Panel]:
        """All panels of a view that is `newly` shown, else those that follow the selection."""
        return [panel for panel in self.view.panels if newly or not panel.once]

    def has(self, panel: Panel) -> bool:
        """Whether the panel has a place."""
        if panel.compares:
            compared = None if self.view.compares and self.is_alone else self.compared_in(panel)
            return compared is not None and all(self.fits(panel, trace) for trace in compared.runs)
        return any(self.fits(panel, trace) for trace, _selection in self.looks)

    def fits(self, panel: Panel, trace: Trace) -> bool:
        return self.applies_to(trace) and panel.applies_to(trace)

    def compared_in(self, panel: Panel) -> Comparison | None:
        """What a panel that compares is about."""
        if panel.compares == "other" or not self.has_other:
            return self.comparison
        return Comparison.with_unchanged(self.trace) if self.trace.baseline else None

    def draw(self, panel: Panel) -> Any:
        """The panel's picture; None where it does not apply to the models."""
        try:
            return self._picture(panel) if self.has(panel) else None
        except NotYet as not_yet:
            return Instead(_("This takes longer than a click."), not_yet.job)
        except ModelGone as gone:
            return Instead(lacking(gone))

    def job_of(self, panel_name: str) -> Job | None:
        """What a panel's picture waits for; None where it waits for nothing."""
        panels = [panel for panel in self.view.panels if panel.name == panel_name]
        picture = self.draw(panels[0]) if panels else None
        return picture.job if isinstance(picture, Instead) else None

    def _picture(self, panel: Panel) -> Any:
        if panel.compares:
            try:
                return panel.draw(self.compared_in(panel), self.selection)
            except Incomparable as incomparable:
                is_said = self.view.compares and self.formula == str(incomparable)  # above all of them
                return None if is_said else Instead(str(incomparable))
        if not self.has_other:
            return panel.draw(*self.looks[0])
        first, second = (look if self.fits(panel, look[0]) else None for look in self.looks)
        return picture_of_two(panel, first, second, self.comparison, self.shown)

    def mark(self, panel: Panel) -> Mark | None:
        """What vouches for the panel's numbers, of a difference in both runs; None where they are not there yet."""
        try:
            return self._mark(panel) if panel.mark and self.has(panel) else None
        except (NotYet, Incomparable, ModelGone):
            return None

    def _mark(self, panel: Panel) -> Mark | None:
        if panel.compares:
            return panel.mark(self.compared_in(panel), self.selection)
        if not all(self.fits(panel, trace) for trace, _selection in self.told):
            return None
        if self.shown == "difference" and panel.alone(self.selection):
            return None
        marks = [panel.mark(*look) for look in self.told]
        return marks[0] if len(marks) == 1 else both(*marks)


def known(work: Callable[[], Any], otherwise: Any) -> Any:
    """What it returns; `otherwise` where it asks a model that is gone."""
    try:
        return work()
    except ModelGone:
        return otherwise


def lacking(gone: ModelGone) -> str:
    """Why there is no picture of a run that was kept without its model."""
    if not gone.needs:
        return _("This asks the model of this run, which is not here: load it, and run the text again.")
    return _(
        "This needs {name}, which the model of this run has and the run has not kept: load the model, and run the text "
        "again.",
        name=gone.needs,
    )


def open_view_of(runs: Runs, asked: PageState) -> OpenView:
    """The tab that is asked for, of its run and of the other."""
    lm, trace = runs.held(asked.run)
    held = lm, asked.other and runs.model(asked.other.checkpoint)
    selection = asked.selection.within(trace)
    comparison = runs.comparison(asked)
    return OpenView(VIEW_NAMED[asked.selection.view], trace, selection, held, comparison, asked.seen_other is not None)
