"""What the open tab shows, by element ids."""

from collections.abc import Callable
from typing import Any

from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.trace import Trace
from explorer.tracing.work import go_on
from explorer.views import VIEW_NAMED
from explorer.views.choices import OF_TOKENS, choices
from explorer.views.overview.diagram import Diagram
from explorer.views.two_runs.picture import Instead
from explorer.views.view import Panel, SmallMultiples
from explorer.web.answers.open_view import OpenView
from explorer.web.protocol import CHANGES, CHOOSERS, FORMULA, IN_FULL, LISTS, MARK, WHAT_IFS, WORDS, WRITTEN, in_tab
from explorer.web.widgets.changes import Changes
from explorer.web.widgets.choosers import Choosers
from explorer.web.widgets.figure import Figure
from explorer.web.widgets.head_grid import HeadGrid
from explorer.web.widgets.in_full import InFull
from explorer.web.widgets.model_map import ModelMap
from explorer.web.widgets.prompt_lists import PromptLists
from explorer.web.widgets.what_ifs import WhatIfs

WIDGETS = {SmallMultiples: HeadGrid, Diagram: ModelMap}  # of pictures that are no figures


def view_contents(open_view: OpenView, newly: bool, part: int) -> dict[str, Any]:
    """What it shows in a part of an answer (see `Endpoints.answer`); None in place of a picture that it lacks.

    Args:
        newly: whether the run is another, else only the selection is.
    """
    name, panels = open_view.view.name, open_view.panels(newly)
    if part == 2:
        marks = {panel.name: _piece(open_view.mark, panel) for panel in panels}
        return {in_tab(name, panel) + MARK: mark and mark.as_dict() for panel, mark in marks.items()}
    there = [panel for panel in panels if open_view.has(panel)]
    later = there[len(_first_row(there)) :]
    now = later if part else [panel for panel in panels if panel not in later]
    pictures = {in_tab(name, panel.name): packed(_piece(open_view.draw, panel)) for panel in now}
    if part:
        return pictures
    if open_view.view.in_full:
        further = open_view.in_full
        pictures[in_tab(name, IN_FULL)] = InFull.pack(*further) if further else None
    if open_view.view.recipe:
        recipe, layer = open_view.recipe, open_view.selection.layer
        pictures[in_tab(name, LISTS)] = PromptLists.pack(open_view.trace, recipe, layer) if recipe else None
    return pictures | {
        CHANGES: Changes.pack(open_view.trace, open_view.comparison.other if open_view.has_other else None),
        in_tab(name, WORDS): open_view.words,
        in_tab(name, FORMULA): open_view.formula,
        in_tab(name, CHOOSERS): Choosers.pack(open_view.choices),
        in_tab(name, WHAT_IFS): WhatIfs.pack(open_view.what_ifs),
    }


def written_on(open_view: OpenView, settings: GenerationSettings) -> dict[str, Any]:
    """What the open tab writes on by the settings of the generation panel, if it does."""
    name = open_view.view.name
    return {in_tab(name, WRITTEN): open_view.written(settings)} if open_view.view.written else {}


def lists_of_tokens(selection: Selection, trace: Trace) -> dict[str, Any]:
    """The open tab's choosers that name tokens."""
    view = VIEW_NAMED[selection.view]
    found = choices([field for field in view.controls if field in OF_TOKENS], trace, selection.within(trace))
    return {in_tab(view.name, CHOOSERS): Choosers.pack(found, all_of_them=False)}


def _first_row(panels: list[Panel]) -> list[Panel]:
    """What is seen at once, one picture or two side by side: it does not wait for what is below."""
    return panels[: 2 if [panel.width for panel in panels[:2]] == ["half", "half"] else 1]


def _piece(work: Callable[[Panel], Any], panel: Panel) -> Any:
    """What there is to be done for a panel, if the answer is still wanted."""
    go_on()
    return work(panel)


def packed(picture: Any) -> Any:
    """A picture as its widget takes it, or the sentence in its place."""
    if isinstance(picture, Instead):
        job = picture.job
        waits = {"job": {"name": job.name, "seconds": job.seconds}} if job else {}
        return {"instead": picture.words} | waits
    return None if picture is None else WIDGETS.get(type(picture), Figure).pack(picture)
