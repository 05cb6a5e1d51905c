"""Properties of every panel of every view, for every kind of model."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import LANGUAGES, translate, use_locale
from explorer.views import FULL, VIEWS
from explorer.views.selection import OPTIONS, TITLES
from explorer.views.view import View
from explorer.web.browser_api.open_view import OpenView
from model.config import CHOICES
from tests.panels import PANELS, capture_first_applicable_run, each_panel_and_style, subject
from tests.rendered_figures import RenderedFigure
from tests.sample_models import CORE, STYLES, capture_edited_style, capture_style
from tests.subtest_loops import each_style, subtest_each, subtest_groups

from .figure_checks import FIGURES, assert_valid_figure, edited_run, extreme_selections, figure_json

FIELDS = {name: type(default) for name, default in Selection().as_dict().items()}
CLICK_SOURCES = {
    "figure": {"x", "y", "customdata"},
    "head_grid": {"x", "y", "layer", "head"},
    "head_table": {"layer", "head"},
    "model_map": set(),
    "whole_model": set(),
}

every_view = subtest_each("view", VIEWS)
MULTI_SELECT_PANELS = {
    name: panel for name, (_, panel) in PANELS.items() if isinstance(panel.click_selects.get("customdata"), tuple)
}
# Panels with own lists instead of the selection.
LIST_PANELS = ("patching-agreement", "patching-agreement_positions", "patching-paths")


def unedited_run(name: str, style: str, length: int = 12) -> Trace:
    return capture_style(style, length)


def test_names_are_unique_and_fit_into_a_url():
    names = [view.name for view in VIEWS]
    assert len(set(names)) == len(names)
    for view in VIEWS:
        panels = [panel.name for panel in view.panels]
        assert panels and len(set(panels)) == len(panels)
        assert all(re.fullmatch("[a-z_]+", name) for name in [view.name, *panels])
    assert len({f"{view.name}-{panel.name}" for view in VIEWS for panel in view.panels}) == len(PANELS)


MAX_TITLE_CHARS = 48  # one line on a phone


@subtest_each("language", LANGUAGES)
def test_panel_titles_fit_on_one_line(language):
    titles = []
    for view in VIEWS:
        first_row = view.panels[: 2 if [panel.width for panel in view.panels[:2]] == ["half", "half"] else 1]
        with use_locale(language):
            titles += [translate(panel.title) for panel in view.panels if panel not in first_row]
    assert [title for title in titles if len(title) > MAX_TITLE_CHARS] == []


@every_view
def test_descriptions_are_whole_sentences(view, tiny_config):
    assert view.title.strip()
    instead = [view.unavailable_message(replace(tiny_config, position=position)) for position in CHOICES["position"]]
    for text in (view.description, *instead):
        assert text[0].isupper() and text.endswith(".")
    assert len(view.description.split()) <= 25
    assert not re.search(
        r"\b(plus|arrow|Enter|Shift) keys?\b", view.description
    )  # the glossary explains `key` of attention
    assert all(panel.title.strip() for panel in view.panels)


@each_style
@subtest_each("view", [view for view in VIEWS if view.sentence and not view.is_comparison])
def test_view_sentence_is_short_and_follows_selection(trace, view):
    words = set()
    for query in range(len(trace)) if view.is_applicable(trace) else ():
        selection = Selection(query=query, layer=1, head=1, tap="blocks.1.resid_post").clamp_to_trace(trace)
        text = view.sentence(trace, selection)
        assert text[0] not in " {" and text.endswith((".", ")")) and len(text.split()) <= 27, text
        words.add(text)
    assert not words or len(words) > (0 if view.name == "training" else len(trace) // 2)


@every_view
def test_every_control_is_a_field_with_options(view):
    assert OPTIONS.keys() == TITLES.keys()
    assert set(view.controls) <= OPTIONS.keys() | {field.name for field in view.fields}
    assert len(set(view.controls)) == len(view.controls)


def test_clicks_select_existing_fields():
    for panel_name, (_, panel) in PANELS.items():
        assert set(panel.click_selects) <= CLICK_SOURCES[panel.kind], panel_name
        for source, names in panel.click_selects.items():
            several = isinstance(names, tuple)
            assert not several or (source == "customdata" and len(set(names)) == len(names)), panel_name
            for name in names if several else [names]:
                assert FIELDS.get(name) is int or (several and name == "view"), panel_name


@each_panel_and_style(run=unedited_run, condition=lambda view, panel: panel in MULTI_SELECT_PANELS.values())
def test_multi_select_clicks_are_valid(name, style, length):
    trace, panel = capture_style(style, length), MULTI_SELECT_PANELS[name]
    for selection in extreme_selections(trace):
        rows = [
            row
            for part in RenderedFigure(panel.draw(subject(panel, trace), selection)).parts
            for row in part.get("customdata") or ()
        ]
        assert rows
        for row in rows:
            clicked = selection.replace(**dict(zip(panel.click_selects["customdata"], row, strict=True)))
            assert clicked == clicked.clamp_to_trace(trace)
            assert clicked.view in {view.name for view in VIEWS}


@each_panel_and_style(lengths=[1, 12, 32], run=unedited_run)
def test_every_panel_can_be_drawn(name, style, length):
    trace, panel = capture_style(style, length), PANELS[name][1]
    assert len(trace) == length
    for selection in extreme_selections(trace):
        assert_valid_figure(panel.draw(subject(panel, trace), selection), panel)


@each_panel_and_style(lengths=[1, 12], run=edited_run, every=3)
def test_every_panel_can_be_drawn_with_interventions(name, style, length):
    trace, panel = capture_edited_style(style, length), PANELS[name][1]
    assert_valid_figure(panel.draw(subject(panel, trace), extreme_selections(trace)[-1]), panel)


@subtest_each("style", STYLES)
def test_comparing_panels_need_interventions(style):
    runs = capture_style(style), capture_edited_style(style)
    for view in VIEWS:
        plain, changed = (open_view(view, run) for run in runs)
        for panel in view.panels:
            assert plain.has(panel) is (not panel.compared_run and changed.has(panel)), panel.name


def open_view(view: View, run: Trace) -> OpenView:
    compared = Comparison.with_unchanged(run) if run.baseline else None
    return OpenView(view, run, Selection().clamp_to_trace(run), comparison=compared)


def each_view_and_style() -> Callable:
    """Run a test with each (view, style, length), one of the lengths in turn; the core suite has each view once."""
    core, others = ({style: [] for style in STYLES} for _ in range(2))
    for number, view in enumerate(VIEWS):
        styles = [style for style in STYLES if view.is_applicable(capture_style(style))]
        bundled = [style for style in styles if style in CORE] or styles
        for nth, style in enumerate(styles):
            group = core if style == bundled[number % len(bundled)] else others
            group[style].append({"view": view, "style": style, "length": [1, 12, 32][(number + nth) % 3]})
    return subtest_groups(core, others)


@each_view_and_style()
def test_every_formula_has_numbers(view, style, length):
    for trace in (capture_style(style, length), capture_edited_style(style, length)):
        for selection in extreme_selections(trace):
            if view.is_comparison and not trace.baseline:
                continue
            formula = view.formula(subject(view, trace), selection)
            assert re.search(r"= −?\d" if view in FULL else r"\d|first token", formula)
            assert not re.search(r"\b(nan|inf|None)\b", formula)


def without_value(trace, needed):
    """Return the trace as if a value had not been captured; for a weight, as if its model were unloaded."""
    if needed.endswith(".weight"):
        return replace(trace, model=None, weights={})
    pattern = re.compile(re.escape(needed).replace(r"\*", r"\d+"))
    return replace(trace, values={name: value for name, value in trace.values.items() if not pattern.fullmatch(name)})


@each_style
def test_view_applies_if_required_taps_exist(capture_trace, style):
    trace = capture_trace(style)
    for view in VIEWS:
        missing = [name for name in view.required_taps if not trace.has_tap(name)]
        if view.required_any_tap and not any(map(trace.has_tap, view.required_any_tap)):
            missing.append(" or ".join(view.required_any_tap))
        assert view.is_applicable(trace) is not bool(missing)
        for needed in view.required_taps:
            assert not view.is_applicable(without_value(trace, needed))


@each_style
def test_positions_view_needs_positions(trace):
    knows = trace.config.position != "none"
    names = [view.name for view in VIEWS if view.is_applicable(trace)]
    assert names == [view.name for view in VIEWS if knows or view.name != "positions"]


def test_panel_needs_its_required_taps():
    for name, (_, panel) in PANELS.items():
        trace = capture_first_applicable_run(name)
        for needed in panel.required_taps:
            assert not panel.is_applicable(without_value(trace, needed)), (name, needed)


def test_heatmap_texts_match_their_categories():
    """On category axes Plotly maps a heatmap's values to their categories, but not its texts."""
    for name in FIGURES:
        trace, (_, panel) = capture_first_applicable_run(name, 32), PANELS[name]
        for selection in extreme_selections(trace):
            figure = RenderedFigure(panel.draw(subject(panel, trace), selection))
            for part in figure.parts:
                if part["type"] != "heatmap" or not part.keys() & {"text", "hovertext", "customdata"}:
                    continue
                for letter in "xy":
                    axis = figure.axis(letter, part)
                    if axis.get("type") == "category" and "categoryarray" in axis:
                        assert part[letter] == axis["categoryarray"], (name, letter)


@pytest.mark.exhaustive
@subtest_each("name", PANELS)
def test_drawing_is_deterministic(name):
    trace, (_, panel) = capture_first_applicable_run(name), PANELS[name]
    first, second = (figure_json(panel.draw(subject(panel, trace), extreme_selections(trace)[-1])) for _ in range(2))
    assert first == second


@pytest.mark.exhaustive
@subtest_each("name", PANELS)
def test_selection_independent_figures_stay_equal(name):
    trace, (_, panel) = capture_first_applicable_run(name), PANELS[name]
    if name == "positions-wavelengths":
        trace = capture_style("sandwich")  # its layers have different angles
    payloads = {figure_json(panel.draw(subject(panel, trace), selection)) for selection in extreme_selections(trace)}
    assert panel.is_selection_independent is (len(payloads) == 1) or name in LIST_PANELS
