"""What holds for every panel of every view, of every kind of model."""

import re
from dataclasses import fields, replace

import pytest

from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import FULL, VIEWS
from explorer.views.choices import OPTIONS, TITLES
from explorer.views.view import View
from explorer.web.answers.open_view import OpenView
from model.config import CHOICES
from tests.drawn import Picture
from tests.panels import PANELS, each_panel_and_style, every_panel, fitting_run, subject
from tests.specimens import CORE, STYLES, edited_trace_of, trace_of

from .every_picture import FIGURES, changed, check, selections, sent

FIELDS = {field.name: field.type for field in fields(Selection)}
CLICKED = {"figure": {"x", "y", "customdata"}, "head_grid": {"x", "y", "layer", "head"}, "model_map": set()}

every_view = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
each_view_and_style = pytest.mark.parametrize(
    ("view", "style"),
    [
        pytest.param(view, style, marks=() if style == shown[place % len(shown)] else pytest.mark.exhaustive)
        for place, view in enumerate(VIEWS)
        for styles in [[style for style in STYLES if view.applies_to(trace_of(style))]]
        for shown in [[style for style in styles if style in CORE] or styles]
        for style in styles
    ],
    ids=lambda value: getattr(value, "name", value),
)
SEVERAL = {name: panel for name, (_, panel) in PANELS.items() if isinstance(panel.selects.get("customdata"), tuple)}
# What follows lists of its own and no place.
OF_LISTS = ("patching-agreement", "patching-agreement_positions", "patching-paths")


def unchanged(name: str, style: str, length: int = 12) -> Trace:
    return trace_of(style, length)


def test_names_are_unique_and_fit_into_a_url():
    names = [view.name for view in VIEWS]
    assert len(set(names)) == len(names)
    for view in VIEWS:
        panels = [panel.name for panel in view.panels]
        assert panels and len(set(panels)) == len(panels)
        assert all(re.fullmatch("[a-z_]+", name) for name in [view.name, *panels])
    assert len({f"{view.name}-{panel.name}" for view in VIEWS for panel in view.panels}) == len(PANELS)


@every_view
def test_a_view_speaks_in_sentences(view, tiny_config):
    assert view.title.strip()
    instead = [view.otherwise(replace(tiny_config, position=position)) for position in CHOICES["position"]]
    for text in (view.words, *instead):
        assert text[0].isupper() and text.endswith(".")
    assert 2 <= len(re.findall(r"\.(?= |$)", view.words)) <= 4
    assert not re.search(r"\b(plus|arrow|Enter|Shift) keys?\b", view.words)  # `key` is explained as attention's
    assert all(panel.title.strip() for panel in view.panels)


@every_view
def test_every_control_is_a_field_that_can_be_chosen(view):
    assert set(view.controls) <= set(OPTIONS) & set(TITLES) & set(FIELDS)
    assert len(set(view.controls)) == len(view.controls)


@every_panel
def test_a_click_selects_what_there_is(name):
    _, panel = PANELS[name]
    assert set(panel.selects) <= CLICKED[panel.kind]
    for source, names in panel.selects.items():
        several = isinstance(names, tuple)
        assert not several or (source == "customdata" and len(set(names)) == len(names))
        assert all(FIELDS.get(name) is int or (several and name == "view") for name in (names if several else [names]))


@each_panel_and_style(run=unchanged, where=lambda view, panel: panel in SEVERAL.values())
def test_a_click_that_selects_several_things_knows_them_all(name, style, length):
    trace, panel = trace_of(style, length), SEVERAL[name]
    for selection in selections(trace):
        rows = [
            row
            for part in Picture(panel.draw(subject(panel, trace), selection)).parts
            for row in part.get("customdata") or ()
        ]
        assert rows
        for row in rows:
            clicked = replace(selection, **dict(zip(panel.selects["customdata"], row, strict=True)))
            assert clicked == clicked.within(trace)
            assert clicked.view in {view.name for view in VIEWS}


@each_panel_and_style(lengths=[1, 12, 32], run=unchanged, every=3)
def test_every_panel_can_be_drawn(name, style, length):
    trace, panel = trace_of(style, length), PANELS[name][1]
    assert len(trace) == length
    for selection in selections(trace):
        check(panel.draw(subject(panel, trace), selection), panel)


@each_panel_and_style(lengths=[1, 12], run=changed, every=3)
def test_every_panel_can_be_drawn_of_a_changed_run(name, style, length):
    trace, panel = edited_trace_of(style, length), PANELS[name][1]
    check(panel.draw(subject(panel, trace), selections(trace)[-1]), panel)


@every_panel
def test_a_panel_that_compares_has_a_place_only_in_a_changed_run(name):
    view, panel = PANELS[name]
    for style in STYLES:
        runs = trace_of(style), edited_trace_of(style)
        plain, changed = (open_view(view, run) for run in runs)
        assert plain.has(panel) is (not panel.compares and changed.has(panel))


def open_view(view: View, run: Trace) -> OpenView:
    compared = Comparison.with_unchanged(run) if run.baseline else None
    return OpenView(view, run, Selection().within(run), comparison=compared)


@each_view_and_style
@pytest.mark.parametrize("length", [1, 12, pytest.param(32, marks=pytest.mark.exhaustive)], ids="{} tokens".format)
def test_every_formula_has_numbers_in_it(view, style, length):
    for trace in (trace_of(style, length), edited_trace_of(style, length)):
        for selection in selections(trace):
            if view.compares and not trace.baseline:
                continue
            formula = view.formula(subject(view, trace), selection)
            assert re.search(r"= −?\d" if view in FULL else r"\d|first token", formula)
            assert not re.search(r"\b(nan|inf|None)\b", formula)


def without(trace, needed):
    """As if a value had not been captured; of a weight, as if no model were known."""
    if needed.endswith(".weight"):
        return replace(trace, model=None, weights={})
    pattern = re.compile(re.escape(needed).replace(r"\*", r"\d+"))
    return replace(trace, values={name: value for name, value in trace.values.items() if not pattern.fullmatch(name)})


def test_a_view_applies_if_all_it_needs_was_captured(trace_of, style):
    trace = trace_of(style)
    for view in VIEWS:
        missing = [name for name in view.needs if not trace.has(name)]
        if view.needs_one_of and not any(map(trace.has, view.needs_one_of)):
            missing.append(" or ".join(view.needs_one_of))
        assert view.applies_to(trace) is not bool(missing)
        for needed in view.needs:
            assert not view.applies_to(without(trace, needed))


def test_only_a_model_that_knows_positions_has_some_to_show(trace):
    knows = trace.config.position != "none"
    names = [view.name for view in VIEWS if view.applies_to(trace)]
    assert names == [view.name for view in VIEWS if knows or view.name != "positions"]


@every_panel
def test_a_panel_has_no_place_where_what_it_needs_was_not_captured(name):
    trace, (_, panel) = fitting_run(name), PANELS[name]
    for needed in panel.needs:
        assert not panel.applies_to(without(trace, needed))


@pytest.mark.parametrize("name", FIGURES)
def test_what_cells_say_stands_where_their_values_do(name):
    """Along categories plotly moves the values of a heatmap to theirs, and leaves the texts where they stand."""
    trace, (_, panel) = fitting_run(name, 32), PANELS[name]
    for selection in selections(trace):
        picture = Picture(panel.draw(subject(panel, trace), selection))
        for part in picture.parts:
            if part["type"] != "heatmap" or not part.keys() & {"text", "hovertext", "customdata"}:
                continue
            for letter in "xy":
                axis = picture.axis(letter, part)
                if axis.get("type") == "category" and "categoryarray" in axis:
                    assert part[letter] == axis["categoryarray"], letter


@every_panel
@pytest.mark.exhaustive
def test_the_same_question_draws_the_same_picture(name):
    trace, (_, panel) = fitting_run(name), PANELS[name]
    first, second = (sent(panel.draw(subject(panel, trace), selections(trace)[-1])) for _ in range(2))
    assert first == second


@every_panel
@pytest.mark.exhaustive
def test_what_is_drawn_once_is_the_same_whatever_is_selected(name):
    trace, (_, panel) = fitting_run(name), PANELS[name]
    if name == "positions-wavelengths":
        trace = trace_of("sandwich")  # whose layers have angles of their own
    drawn = {sent(panel.draw(subject(panel, trace), selection)) for selection in selections(trace)}
    assert panel.once is (len(drawn) == 1) or name in OF_LISTS
