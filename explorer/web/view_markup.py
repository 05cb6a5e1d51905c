"""Markup of a view: its words, its tools in one line, and its panels."""

from explorer.lessons.prompts import PROMPT_PAIRS
from explorer.translations import _, translate
from explorer.views.view import Panel, View
from explorer.web.protocol import (
    CHOOSERS,
    CODE,
    FORMULA,
    IN_FULL,
    LISTS,
    TAB,
    WALK,
    WALKS,
    WHAT_IFS,
    WORDS,
    WRITTEN,
    element_id,
)
from explorer.web.widgets.figure import Figure, HeadGrid, HeadTableFigure
from explorer.web.widgets.header import NumbersViewLink, TextBlock
from explorer.web.widgets.model_map import ModelMap
from explorer.web.widgets.view_tools import DirectionPromptLists, InterventionControls, PromptPairButtons, SelectFields
from explorer.web.widgets.walk import WalkthroughButton
from explorer.web.widgets.whole_model import WholeModelFigure
from explorer.web.widgets.widget import Widget

EMPTY_LINE = "\u00a0"  # the room of a sentence that comes with the run


def view_markup(view: View) -> str:
    """Return a view's markup in the current language, without its content."""
    tools: list[Widget] = []
    if view.name == "patching":
        tools.append(PromptPairButtons(PROMPT_PAIRS, elem_id="prompt-pairs"))
    tools.append(SelectFields(elem_id=element_id(view.name, CHOOSERS)))
    if view.name in WALKS:
        tools.append(WalkthroughButton(WALKS[view.name], elem_id=element_id(view.name, WALK)))
    if view.intervention_controls:
        tools.append(InterventionControls(elem_id=element_id(view.name, WHAT_IFS)))
    if view.direction_spec:
        tools.append(DirectionPromptLists(elem_id=element_id(view.name, LISTS)))
    summary = "" if view.numbers_view_link else _("Formula")
    tools.append(TextBlock(kind="formula", summary=summary, elem_id=element_id(view.name, FORMULA)))
    if view.code:
        tools.append(TextBlock(kind="code", elem_id=element_id(view.name, CODE)))
    text = EMPTY_LINE if view.sentence else translate(view.description)
    words = TextBlock(text, elem_id=element_id(view.name, WORDS)).markup
    after: list[Widget] = []
    if view.continuation_text:
        after.append(TextBlock(kind="formula", elem_id=element_id(view.name, WRITTEN)))
    if view.numbers_view_link:
        after.append(NumbersViewLink(elem_id=element_id(view.name, IN_FULL)))
    panels = join_markup([panel_widget(view.name, panel) for panel in view.panels])
    return (
        f'<section id="{element_id(view.name, TAB)}" class="tabitem" role="tabpanel">{words}'
        f'<div class="view-tools">{join_markup(tools)}</div><div class="panels">{panels}</div>{join_markup(after)}'
        "</section>"
    )


def join_markup(widgets: list[Widget]) -> str:
    """Return the markup of several widgets."""
    return "".join(widget.markup for widget in widgets)


def panel_widget(view: str, panel: Panel) -> Widget:
    """Return the widget of a panel."""
    panel_options = {
        "title": translate(panel.title),
        "elem_id": element_id(view, panel.name),
        "elem_classes": [f"panel-{panel.width}", *["once"] * panel.is_selection_independent],
    }
    if panel.kind == "head_grid":
        return HeadGrid(selects=panel.click_selects, **panel_options)
    if panel.kind == "head_table":
        return HeadTableFigure(selects=panel.click_selects, **panel_options)
    if panel.kind == "model_map":
        return ModelMap(height=panel.height, min_width=panel.min_width, **panel_options)
    if panel.kind == "whole_model":
        return WholeModelFigure(**panel_options)
    size = {"height": panel.height, "min_plot_width": panel.min_width}
    return Figure(selects=panel.click_selects, to_steps=panel.click_opens_checkpoint, **size, **panel_options)
