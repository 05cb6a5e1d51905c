"""What a click on a bar, a dot or a part of the map tells is what is drawn there, worked out again."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from explorer.explain.derivation import Derivation
from explorer.explain.point import Point
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from tests.drawn import Map, Picture, numbers, picture_of
from tests.drawn import Point as Seen
from tests.panels import PANELS, each_panel_and_style, fitting_run, run_of, subject
from tests.specimens import edited_trace_of, kinds_edited_trace_of, stream_edited_trace_of

UNEXPLAINED = {"tokens-merges", "residual-gains", "training-loss", "training-copying"}
TOLERANCE = 2e-4  # of the drawn value's size: what is drawn is worked out in float32 in places
NO_NUMBER = (
    "not defined",
    "not seen",
    "nothing precedes it",
    "every head’s q and k are turned",
)  # told where there is none


def test_every_picture_of_numbers_explains_them():
    assert {name for name, (_, panel) in PANELS.items() if not panel.inspect} == UNEXPLAINED
    for _, panel in PANELS.values():
        assert bool(panel.inspect) is not bool(panel.no_inspection)


def selections(name: str, trace: Trace) -> list[Selection]:
    last = len(trace) - 1
    found = [
        Selection(query=last, key=last // 2, depth=1, tap="logits"),
        Selection(layer=1, head=2, query=last // 2, key=0, dim=9, neuron=7, target=3, rival=2, first_token="hidden"),
    ]
    return [selection.within(trace) for selection in found]


def clicks(name: str, trace: Trace) -> Iterator[tuple[Selection, Seen]]:
    """What a click selects and what is then told there: of every line, set of bars and kind of part its first, middle
    and last point; heatmaps have a test of their own."""
    _, panel = PANELS[name]
    for selection in selections(name, trace):
        drawn = picture_of(panel, panel.draw(subject(panel, trace), selection))
        parts: dict[int, list[Seen]] = {}
        for p in drawn.points():
            parts.setdefault(p.part, []).append(p)
        for points in parts.values():
            for p in {p.item: p for p in (points[0], points[len(points) // 2], points[-1])}.values():
                stays = "view" in p.change  # where a click opens another tab, one with Shift selects nothing
                clicked = selection if stays else replace(selection, **p.change)
                clicked = replace(clicked, key=min(clicked.key, clicked.query)).within(trace)
                then = drawn if clicked == selection else picture_of(panel, panel.draw(subject(panel, trace), clicked))
                yield clicked, next(q for q in then.points() if same_place(p, q, drawn, then))


def has_cells(picture: Picture | Map) -> bool:
    return any(part.get("type") == "heatmap" for part in picture.parts)


def is_pointed_at(name: str) -> bool:
    """Whether it is a figure of lines, bars or dots, or the map, that a click explains."""
    _, panel = PANELS[name]
    if not panel.inspect or panel.kind == "head_grid":
        return False
    trace = fitting_run(name)
    return not has_cells(picture_of(panel, panel.draw(subject(panel, trace), selections(name, trace)[0])))


POINTED_AT = list(filter(is_pointed_at, PANELS))
each_picture_and_style = partial(
    each_panel_and_style, where=lambda view, panel: f"{view.name}-{panel.name}" in POINTED_AT
)


def same_place(p: Seen, q: Seen, before: Picture | Map, after: Picture | Map) -> bool:
    """Whether it is the same point after a click, which may have changed how many lines there are."""
    if isinstance(before, Map):  # next tokens, which are the last parts, by their ranks
        return p.change == q.change if "target" in p.change else p.item == q.item
    same_lines = len(before.parts) == len(after.parts)
    return (p.part, p.item) == (q.part, q.item) if same_lines else (p.x, p.y, p.item) == (q.x, q.y, q.item)


def tells_of(seen: Seen, value: float) -> bool:
    """Whether a number is told or drawn there."""
    expected = -value if "takes" in seen.told else value
    told = (abs(number - expected) <= unit * 0.51 + 1e-4 * abs(value) for number, unit in numbers(seen.told))
    return any(told) or seen.value == pytest.approx(value, abs=TOLERANCE)


def answers(name: str, trace: Trace) -> Iterator[tuple[Selection, Seen, tuple[Derivation, ...]]]:
    for selection, seen in clicks(name, trace):
        told = PANELS[name][1].inspect(
            subject(PANELS[name][1], trace), selection, Point(seen.x, seen.y, curve=seen.part, item=seen.item)
        )
        yield selection, seen, told if isinstance(told, tuple) else (told,) if told else ()


def check(name: str, trace: Trace) -> int:
    count = 0
    for selection, seen, told in answers(name, trace):
        assert told or any(words in seen.told for words in NO_NUMBER), (selection, seen)
        for derivation in told:
            assert tells_of(seen, derivation.value), (selection, seen, derivation)
            assert derivation.difference <= TOLERANCE * max(1.0, abs(derivation.value)), (selection, seen, derivation)
            source = derivation.source
            assert source.path.startswith("model/" if derivation.kind == "captured" else "explorer/")
            assert source.text and all("\n" not in line for line in derivation.lines())
            count += 1
    return count


@each_picture_and_style()
def test_a_clicked_point_is_worked_out_to_what_is_told_there(name, style, length):
    has_none = name.startswith("patching")  # between a run and itself; of two prompts: views/patching/test_view.py
    assert bool(check(name, run_of(name, style, length))) is not has_none


@pytest.mark.parametrize("name", POINTED_AT)
@pytest.mark.exhaustive
def test_so_it_is_of_a_single_token(name):
    check(name, fitting_run(name, length=1))


@each_picture_and_style(run=lambda name, style: edited_trace_of(style), every=3)
@pytest.mark.exhaustive
def test_so_it_is_in_a_changed_run(name, style, length):
    check(name, edited_trace_of(style))


@pytest.mark.exhaustive
@each_picture_and_style(every=3)
def test_so_it_is_in_a_run_changed_along_its_stream(name, style, length):
    check(name, stream_edited_trace_of(style, length))
    check(name, kinds_edited_trace_of(style, length))


@each_picture_and_style()
def test_a_point_that_is_not_there_is_refused(name, style, length):
    trace, panel = run_of(name, style, length), PANELS[name][1]
    selection = selections(name, trace)[0]
    far = 10**6
    for point in (Point(far, far, curve=0, item=far), Point(-1, -1, curve=0, item=-1)):
        with pytest.raises(NoSuchPoint):
            panel.inspect(subject(panel, trace), selection, point)
    with suppress(NoSuchPoint):  # and breaks nothing, whatever line it is said to be of
        panel.inspect(subject(panel, trace), selection, Point(0, 0, curve=far, item=0))


def test_a_wrong_number_shows(trace_of):
    """A bar that does not follow from what it should is told apart by what is worked out again."""
    trace = trace_of("gpt")
    wrong = replace(trace, values={**trace.values, "final_norm": trace["final_norm"] * 1.01})
    total = PANELS["overview-sum"][1].inspect(
        subject(PANELS["overview-sum"][1], wrong), selections("", trace)[0], Point(0, 0, curve=0, item=7)
    )
    assert total.name == "what all parts together add" and total.difference > 1e-3
