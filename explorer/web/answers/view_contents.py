"""Contents of the open tab by element id."""

from collections.abc import Callable
from typing import Any

from explorer.state.generation_settings import GenerationSettings
from explorer.state.selection import Selection
from explorer.tracing.request_budget import check_budget
from explorer.tracing.trace import Trace
from explorer.views import VIEW_BY_NAME
from explorer.views.overview.map_parts import Diagram
from explorer.views.overview.whole_model import WholeModel
from explorer.views.select_fields import TOKEN_FIELDS, select_fields
from explorer.views.two_runs import Placeholder
from explorer.views.view import HeadTable, Panel, SmallMultiples
from explorer.web.answers.open_view import OpenView
from explorer.web.protocol import (
    CHANGES,
    CHOOSERS,
    CODE,
    FORMULA,
    HEADING,
    IN_FULL,
    LISTS,
    MARK,
    WHAT_IFS,
    WORDS,
    WRITTEN,
    element_id,
)
from explorer.web.widgets.figure import Figure, HeadGrid, HeadTableFigure
from explorer.web.widgets.header import NumbersViewLink
from explorer.web.widgets.model_map import ModelMap
from explorer.web.widgets.view_tools import (
    ActiveInterventions,
    DirectionPromptLists,
    InterventionControls,
    SelectFields,
)
from explorer.web.widgets.whole_model import WholeModelFigure

WIDGETS = {
    SmallMultiples: HeadGrid,
    HeadTable: HeadTableFigure,
    Diagram: ModelMap,
    WholeModel: WholeModelFigure,
}  # widgets of figures that are not Plotly's


def view_contents(open_view: OpenView, newly: bool, stage: int) -> dict[str, Any]:
    """Return a view's contents in a stage of an answer (see `Endpoints.answer`); None for a figure it lacks.

    Figures below the first row are drawn once the user has unfolded them.

    Args:
        newly: whether the run is new; otherwise only the selection has changed.
    """
    name, panels = open_view.view.name, open_view.panels(newly)
    shown_panels = [panel for panel in open_view.view.panels if open_view.has(panel)]
    later_panels = shown_panels[len(_first_row(shown_panels)) :]
    folded_panels = [p for p in later_panels if not open_view.selection.is_unfolded(element_id(name, p.name))]
    if stage == 2:
        verifications = {
            panel.name: _draw_if_wanted(open_view.verify, panel) for panel in panels if panel not in folded_panels
        }
        return {
            element_id(name, panel) + MARK: verification and verification.as_dict()
            for panel, verification in verifications.items()
        }
    stage_panels = [p for p in panels if (p in later_panels) == bool(stage) and p not in folded_panels]
    contents = {
        element_id(name, panel.name): figure_payload(_draw_if_wanted(open_view.draw, panel)) for panel in stage_panels
    }
    if stage:
        return contents
    contents |= {element_id(name, panel.name): {"folded": True} for panel in folded_panels}
    contents |= {element_id(name, panel.name) + HEADING: open_view.heading(panel) for panel in shown_panels}
    if open_view.view.numbers_view_link:
        link = open_view.numbers_view_link
        contents[element_id(name, IN_FULL)] = NumbersViewLink.pack(*link) if link else None
    if open_view.view.direction_spec:
        recipe, layer = open_view.recipe, open_view.selection.layer
        contents[element_id(name, LISTS)] = (
            DirectionPromptLists.pack(open_view.trace, recipe, layer) if recipe else None
        )
    if open_view.view.code:
        contents[element_id(name, CODE)] = open_view.code
    return contents | {
        CHANGES: ActiveInterventions.pack(open_view.trace, open_view.comparison.other if open_view.has_other else None),
        element_id(name, WORDS): open_view.description,
        element_id(name, FORMULA): open_view.formula,
        element_id(name, CHOOSERS): SelectFields.pack(open_view.choices),
        element_id(name, WHAT_IFS): InterventionControls.pack(open_view.intervention_controls),
    }


def continuation_contents(open_view: OpenView, settings: GenerationSettings) -> dict[str, Any]:
    """Return the open tab's continuation with these generation settings; empty if it has none."""
    name = open_view.view.name
    return {element_id(name, WRITTEN): open_view.continuation(settings)} if open_view.view.continuation_text else {}


def token_select_fields(selection: Selection, trace: Trace) -> dict[str, Any]:
    """Return the open tab's select fields of tokens."""
    view = VIEW_BY_NAME[selection.view]
    fields = select_fields(
        [field for field in view.select_controls if field in TOKEN_FIELDS], trace, selection.clamp_to_trace(trace)
    )
    return {element_id(view.name, CHOOSERS): SelectFields.pack(fields, all_of_them=False)}


def _first_row(panels: list[Panel]) -> list[Panel]:
    """Return the panels of the first row, one or two side by side: they are sent without waiting for the others."""
    return panels[: 2 if [panel.width for panel in panels[:2]] == ["half", "half"] else 1]


def _draw_if_wanted(work: Callable[[Panel], Any], panel: Panel) -> Any:
    """Apply `work` to a panel, unless the request was cancelled or exceeds its budget."""
    check_budget()
    return work(panel)


def figure_payload(figure: Any) -> Any:
    """Return a figure as its widget takes it, or the text of its placeholder."""
    if isinstance(figure, Placeholder):
        job = figure.job
        job_fields = {"job": {"name": job.name, "seconds": job.seconds}} if job else {}
        return {"instead": figure.message} | job_fields
    return None if figure is None else WIDGETS.get(type(figure), Figure).pack(figure)
