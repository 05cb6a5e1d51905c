"""Clicked bars, dots and elements of the map: the derivation's value is the value that is drawn."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint, Derivation
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from tests.panels import PANELS, capture_first_applicable_run, capture_panel_run, each_panel_and_style, subject
from tests.rendered_figures import Point as Seen
from tests.rendered_figures import RenderedFigure, RenderedMap, numbers, render_panel
from tests.sample_models import capture_all_kinds_edited_style, capture_edited_style, capture_stream_edited_style
from tests.subtest_loops import subtest_each

UNEXPLAINED = {
    *("tokens-merges", "residual-gains", "training-loss", "training-copying", "overview-whole", "choosing-temperature"),
}
TOLERANCE = 2e-4  # relative to the drawn value: figures compute some values in float32
NO_NUMBER = (
    "not defined",
    "not seen",
    "nothing to compare",
    "every head’s q and k are rotated",
)  # texts of elements without a number


def test_every_numeric_figure_is_explained():
    assert {name for name, (_, panel) in PANELS.items() if not panel.inspect} == UNEXPLAINED
    for _, panel in PANELS.values():
        assert bool(panel.inspect) is not bool(panel.no_inspection)


def make_selections(name: str, trace: Trace) -> list[Selection]:
    last = len(trace) - 1
    candidates = [
        Selection(query=last, key=last // 2, residual_depth=1, tap="logits"),
        Selection(layer=1, head=2, query=last // 2, key=0, dim=9, neuron=7, target=3, rival=2, first_token="hidden"),
    ]
    return [selection.clamp_to_trace(trace) for selection in candidates]


def iter_clicks(name: str, trace: Trace) -> Iterator[tuple[Selection, Seen]]:
    """Yield the selection after a click and the element's text: first, middle and last of every line, bar set and kind.

    Heatmaps have a test of their own.
    """
    _, panel = PANELS[name]
    for selection in make_selections(name, trace):
        figure = render_panel(panel, panel.draw(subject(panel, trace), selection))
        elements: dict[int, list[Seen]] = {}
        for element in figure.points():
            elements.setdefault(element.group, []).append(element)
        for points in elements.values():
            for element in {
                element.item: element for element in (points[0], points[len(points) // 2], points[-1])
            }.values():
                stays = "view" in element.change  # if a click opens another tab, Shift-click selects nothing
                clicked = selection if stays else selection.replace(**element.change)
                clicked = replace(clicked, key=min(clicked.key, clicked.query)).clamp_to_trace(trace)
                figure_after = (
                    figure if clicked == selection else render_panel(panel, panel.draw(subject(panel, trace), clicked))
                )
                yield clicked, find_same_point(element, figure, figure_after)


def has_cells(figure: RenderedFigure | RenderedMap) -> bool:
    return any(part.get("type") == "heatmap" for part in figure.parts)


def explains_points(name: str) -> bool:
    """Return whether the panel explains clicks on lines, bars, dots or the model map."""
    _, panel = PANELS[name]
    if not panel.inspect or panel.kind in ("head_grid", "head_table"):
        return False
    trace = capture_first_applicable_run(name)
    return not has_cells(render_panel(panel, panel.draw(subject(panel, trace), make_selections(name, trace)[0])))


EXPLAINED_PANELS = list(filter(explains_points, PANELS))
each_figure_and_style = partial(
    each_panel_and_style, condition=lambda view, panel: f"{view.name}-{panel.name}" in EXPLAINED_PANELS
)


def find_same_point(p: Seen, before: RenderedFigure | RenderedMap, after: RenderedFigure | RenderedMap) -> Seen:
    """Return the point that was `p` before a click, which may change the number of lines, or in which bars it is."""
    points = list(after.points())
    if isinstance(before, RenderedMap):  # next tokens, the last parts of the map, match by rank
        return next(q for q in points if (p.change == q.change if "target" in p.change else p.item == q.item))
    same_place = [q for q in points if (p.x, p.y, p.item) == (q.x, q.y, q.item)]
    same_line = [q for q in points if (p.group, p.item) == (q.group, q.item)]
    return (same_line + same_place if len(before.parts) == len(after.parts) else same_place)[0]


def shows_value(element: Seen, value: float) -> bool:
    """Return whether an element's text or drawn value shows the number."""
    expected = -value if "takes" in element.hover_text else value
    matches = (
        abs(number - expected) <= unit * 0.51 + 1e-4 * abs(value) for number, unit in numbers(element.hover_text)
    )
    return any(matches) or element.value == pytest.approx(value, abs=TOLERANCE)


def iter_derivations(name: str, trace: Trace) -> Iterator[tuple[Selection, Seen, tuple[Derivation, ...]]]:
    for selection, element in iter_clicks(name, trace):
        result = PANELS[name][1].inspect(
            subject(PANELS[name][1], trace),
            selection,
            ClickedPoint(element.x, element.y, curve=element.group, item=element.item),
        )
        yield selection, element, result if isinstance(result, tuple) else (result,) if result else ()


def check_derivations(name: str, trace: Trace) -> int:
    count = 0
    for selection, element, derivations in iter_derivations(name, trace):
        assert derivations or any(text in element.hover_text for text in NO_NUMBER), (selection, element)
        for derivation in derivations:
            assert shows_value(element, derivation.value), (selection, element, derivation)
            assert derivation.difference <= TOLERANCE * max(1.0, abs(derivation.value)), (
                selection,
                element,
                derivation,
            )
            source = derivation.source
            assert source.path.startswith("model/" if derivation.kind == "captured" else "explorer/")
            assert source.text and all("\n" not in line for line in derivation.lines())
            count += 1
    return count


@each_figure_and_style(every=3)
def test_clicked_point_is_recomputed_to_shown_value(name, style, length):
    has_none = name.startswith("patching")  # needs two prompts: see views/patching/test_patching_view.py
    assert bool(check_derivations(name, capture_panel_run(name, style, length))) is not has_none


@pytest.mark.exhaustive
@subtest_each("name", EXPLAINED_PANELS)
def test_clicked_point_of_single_token_is_recomputed(name):
    check_derivations(name, capture_first_applicable_run(name, length=1))


@each_figure_and_style(run=lambda name, style: capture_edited_style(style), every=6)
@pytest.mark.exhaustive
def test_clicked_point_in_edited_run_is_recomputed(name, style, length):
    check_derivations(name, capture_edited_style(style))


@pytest.mark.exhaustive
@each_figure_and_style(every=6)
def test_clicked_point_in_stream_edited_run_is_recomputed(name, style, length):
    check_derivations(name, capture_stream_edited_style(style, length))
    check_derivations(name, capture_all_kinds_edited_style(style, length))


@each_figure_and_style(every=3)
def test_missing_point_is_refused(name, style, length):
    trace, panel = capture_panel_run(name, style, length), PANELS[name][1]
    selection = make_selections(name, trace)[0]
    far = 10**6
    for point in (ClickedPoint(far, far, curve=0, item=far), ClickedPoint(-1, -1, curve=0, item=-1)):
        with pytest.raises(PointNotFoundError):
            panel.inspect(subject(panel, trace), selection, point)
    with suppress(PointNotFoundError):  # no error for any curve number
        panel.inspect(subject(panel, trace), selection, ClickedPoint(0, 0, curve=far, item=0))


def test_derivation_shows_wrong_value(capture_trace):
    """A bar's value that does not follow from its inputs differs from the recomputed one."""
    trace = capture_trace("gpt")
    wrong = replace(trace, values={**trace.values, "final_norm": trace["final_norm"] * 1.01})
    total = PANELS["overview-sum"][1].inspect(
        subject(PANELS["overview-sum"][1], wrong), make_selections("", trace)[0], ClickedPoint(0, 0, curve=0, item=7)
    )
    assert total.name == "what all parts together add" and total.difference > 1e-3
