from dataclasses import replace

import pytest

from explorer.explain.point import Point
from explorer.state.interventions import parse_edits
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.views import VIEWS
from explorer.web.answers.inspecting import inspect
from explorer.web.answers.open_view import OpenView, open_view_of
from tests.exhaustive import in_turn
from tests.nasty_prompts import NASTY_PROMPTS

VIEW = {view.name: view for view in VIEWS}

every_view = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)


@every_view
def test_an_open_view_has_everything_it_shows(rope_trace, view):
    selection = Selection(query=2, key=1).within(rope_trace)
    shown = OpenView(view, rope_trace, selection)
    assert shown.words == view.words
    assert shown.formula == (view.alone if view.compares else view.formula(rope_trace, selection))
    assert [choice.field for choice in shown.choices] == ([] if view.compares else list(view.controls))
    assert shown.panels(newly=True) == list(view.panels)
    assert shown.panels(newly=False) == [panel for panel in view.panels if not panel.once]


@every_view
def test_every_panel_that_is_drawn_has_a_mark(trace, view):
    """Of whatever kind the model is."""
    shown = OpenView(view, trace, Selection().within(trace))
    for panel in view.panels:
        assert bool(shown.draw(panel)) is bool(shown.mark(panel)) is shown.has(panel)


def test_a_panel_that_does_not_apply_is_not_drawn(trace_of):
    (positions,) = [panel for panel in VIEW["tokens"].panels if panel.name == "positions"]
    for style, applies in (("rope", False), ("gpt", True), ("learned", True)):
        trace = trace_of(style)
        shown = OpenView(VIEW["tokens"], trace, Selection(view="tokens").within(trace))
        assert (shown.draw(positions) is not None) is bool(shown.mark(positions)) is applies


def test_a_view_that_does_not_apply_says_why_and_shows_nothing(trace_of):
    trace, view = trace_of("none"), VIEW["kv_cache"]
    trace = replace(trace, values={name: value for name, value in trace.values.items() if not name.endswith("attn.k")})
    shown = OpenView(view, trace, Selection().within(trace))
    assert shown.words == view.otherwise(trace.config)
    assert (shown.formula, shown.choices) == ("", [])
    assert [shown.draw(panel) for panel in view.panels] == [None] * len(view.panels)


def test_a_clicked_number_is_explained(rope_trace):
    shown = OpenView(VIEW["attention"], rope_trace, Selection(layer=1, head=2, query=5).within(rope_trace))
    weight = rope_trace["blocks.1.attn.pattern"][2, 5, 3]
    text = inspect(shown, "pattern", Point(x=3, y=5))
    assert f"{weight:.3g}" in text and "off by" in text and "model/layers/" in text
    with pytest.raises(IndexError):
        inspect(shown, "pattern", Point(x=3, y=99))
    assert inspect(shown, "missing", Point(x=0, y=0)) == ""


def test_views_are_looked_at_within_the_run_whatever_is_selected(opening, asked):
    far = Selection(layer=99, head=99, query=99, key=99, tap="nothing", dim=10**8)
    shown = open_view_of(opening.runs, PageState(asked.run, far))
    assert shown.selection == far.within(shown.trace) != far


@pytest.mark.parametrize(
    ("text", "view"), in_turn(NASTY_PROMPTS, VIEWS), ids=lambda value: getattr(value, "name", ascii(value))
)
def test_tokens_of_nasty_text_can_be_looked_at(opening, text, view):
    asked = opening.restored({"checkpoint": "rope", "text": text})
    shown = open_view_of(opening.runs, replace(asked, selection=replace(asked.selection, view=view.name)))
    assert all(bool(shown.draw(panel)) is shown.has(panel) for panel in view.panels)


@pytest.mark.parametrize(
    ("style", "changes", "words"),
    [
        ("rope", {"edits": parse_edits("blocks.0.attn.z.1*zero")}, "begin with one of the pairs above"),
        ("rope", {"other": ""}, "begin with one of the pairs above"),
        ("gpt", {"other": "the moon asked the owl"}, "A and B are read by different models"),
    ],
    ids=["changed", "same prompt", "other model"],
)
def test_what_holds_of_all_pictures_of_two_runs_is_said_once_above_them(opening, asked, style, changes, words):
    other = changes.get("other")
    compared = None if other is None else opening.run_of(style, other or "the fox asked the owl")
    selection = replace(asked.selection, view="patching")
    asked = PageState(replace(asked.run, edits=changes.get("edits", ())), selection, other=compared)
    shown = open_view_of(opening.runs, asked)
    assert words in shown.formula
    assert [shown.draw(panel) for panel in shown.view.panels] == [None] * len(shown.view.panels)
    assert not any(shown.mark(panel) for panel in shown.view.panels)


def test_what_holds_of_one_picture_of_two_runs_is_said_in_its_place(opening, asked):
    selection = replace(asked.selection, view="patching", patch_head="attn.pattern")
    asked = PageState(asked.run, selection, other=opening.run_of("rope", "the moon asked"))
    shown = open_view_of(opening.runs, asked)
    drawn = {panel.name: shown.draw(panel) for panel in shown.view.panels}
    assert None not in drawn.values()
    assert "pattern" in drawn["heads_denoise"].words and not hasattr(drawn["positions_denoise"], "words")
