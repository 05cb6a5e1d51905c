"""Two runs in every panel: on one scale, and what the one has more than the other."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views.explained import explained
from explorer.views.overview.diagram import Diagram
from explorer.views.two_runs.picture import Instead, picture_of_two
from explorer.views.two_runs.selection import selection_in_other
from explorer.views.view import SmallMultiples
from tests.panels import PANELS, shows
from tests.specimens import CORE, STYLES, models, tokenizer

TEXTS = {
    "same": "the fox and the owl and the moon",
    "length": "the owl and the fox saw the moon",
    "edited": "the fox, who asked the owl, and the moon",
}


@cache
def run(style: str, kind: str) -> Trace:
    ids = tokenizer().encode(TEXTS[kind])
    if kind == "length":
        ids = [*ids, *ids][: len(tokenizer().encode(TEXTS["same"]))]
    return capture(models()[style], tuple(ids), tokenizer=tokenizer())


@cache
def two(style: str, kind: str) -> Comparison:
    comparison = Comparison.of(run(style, "same"), run(style, kind))
    assert comparison.alignment.kind == kind
    return comparison


def look(comparison: Comparison) -> tuple[tuple[Trace, Selection], tuple[Trace, Selection]]:
    selection = Selection(layer=1, head=2, query=9, key=3, dim=5, neuron=7, depth=1).within(comparison.trace)
    return (comparison.trace, selection), (comparison.other, selection_in_other(comparison, selection))


def drawn(name: str, style: str, kind: str, shown: str):
    comparison = two(style, kind)
    return picture_of_two(PANELS[name][1], *look(comparison), comparison, shown)


PAIRS = [
    pytest.param(name, style, kind, marks=() if (style, kind) == ("rope", "edited") else pytest.mark.exhaustive)
    for place, (name, (_view, panel)) in enumerate(PANELS.items())
    for nth, style in enumerate(STYLES)
    for kind in (TEXTS if style in CORE else [list(TEXTS)[(place + nth) % len(TEXTS)]])
    if not panel.compares and shows(name, run(style, "same"))
]
each_pair = pytest.mark.parametrize(("name", "style", "kind"), PAIRS)


def values_of(part: dict) -> tuple[str, np.ndarray]:
    """Which array of a set of bars, lines or cells has its values, and these."""
    letter = "z" if part["type"] == "heatmap" else "x" if part.get("orientation") == "h" else "y"
    return letter, np.asarray(part[letter], float)


def cells(figure, comparison: Comparison, is_other: bool) -> list[dict[tuple, float]]:
    """What every set of bars, lines or cells shows, by where it stands: a token by its position in A (None of B's that
    has none), all else by what is written on its axis."""
    traces, layout = figure.parts
    found = []
    for part in traces:
        letter, values = values_of(part)
        places = []
        for axis, along in enumerate({"z": "yx", "y": "x", "x": "y"}[letter]):
            settings = layout.get(f"{along}axis{part.get(f'{along}axis', along)[1:]}", {})
            written = dict(zip(settings.get("tickvals", ()), settings.get("ticktext", ()), strict=False))
            shown = list(part.get(along, range(values.shape[axis])))
            if along in layout["meta"]["of_tokens"]:
                positions = [int(str(place).split()[0]) for place in shown]
                back = comparison.alignment.back
                places.append([back[i] if is_other else i for i in positions])
            else:
                named = all(place in written for place in shown)
                places.append([written[place] if named else place for place in shown])
        found.append({})
        for index in np.ndindex(values.shape):
            found[-1][tuple(place[i] for place, i in zip(places, index, strict=True))] = float(values[index])
    return found


@each_pair
def test_a_difference_is_that_of_two_separate_pictures(name, style, kind):
    """Cell by cell, in the order of the first picture; blank where the second has nothing at the place."""
    comparison, panel = two(style, kind), PANELS[name][1]
    first, second = (panel.draw(*each) for each in look(comparison))
    less = drawn(name, style, kind, "difference")
    if isinstance(less, Instead):
        assert less.words
        return check_alone(panel, first, second, look(comparison)[0][1])
    if isinstance(first, SmallMultiples):
        partners = comparison.alignment.partners
        mine, theirs, apart = (np.asarray(picture.values) for picture in (first, second, less))
        for query, there in enumerate(partners):
            for key, beside in enumerate(partners):
                both = None not in (there, beside)
                expected = mine[..., query, key] - theirs[..., there, beside] if both else 0.0
                assert_allclose(apart[..., query, key], expected, atol=1e-6)
        return None
    if isinstance(first, Diagram):
        for a, b, part in zip(first.parts, second.parts, less.parts, strict=False):
            if part.kind == "next_token":
                assert part.value is None
            elif a.value is not None:
                assert part.value == pytest.approx(a.value - b.value, abs=1e-6)
                assert a.told in part.told and b.told in part.told
        return None
    mine, theirs, differences = (
        cells(figure, comparison, is_other) for figure, is_other in ((first, False), (second, True), (less, False))
    )
    compared = 0
    for one, two_, less_ in zip(mine, theirs, differences, strict=True):
        assert list(one) == list(less_)
        for place, value in one.items():
            expected = value - two_.get(place, np.nan) if None not in place else np.nan
            assert_allclose(less_[place], expected, atol=1e-6, rtol=1e-5, equal_nan=True)
            compared += not np.isnan(expected)
    assert compared
    return None


def check_alone(panel, first, second, selection):
    """A sentence stands there only where the panel says so, or where the pictures have no places in common."""
    if panel.alone(selection):
        return
    kinds = [[part["type"] for part in figure.parts[0]] for figure in (first, second)]
    assert kinds[0] != kinds[1] or panel.name in ("vector", "outliers", "scales", "shares", "pairs")


@each_pair
def test_both_runs_are_on_one_scale(name, style, kind):
    comparison = two(style, kind)
    first, second = (drawn(name, style, kind, shown) for shown in "ab")
    alone = [PANELS[name][1].draw(*each) for each in look(comparison)]
    if isinstance(first, Diagram):
        assert first.largest == second.largest == max(each.largest for each in alone)
        return
    if isinstance(first, SmallMultiples):
        assert not first.signed and not second.signed
        return
    traces = [figure.parts[0] for figure in (first, second, *alone)]
    for one, two_, *pair in zip(*traces, strict=False):
        if one["type"] == two_["type"] == "heatmap" and "zmin" in one:
            ends = min(part["zmin"] for part in pair), max(part["zmax"] for part in pair)
            assert (one["zmin"], one["zmax"]) == (two_["zmin"], two_["zmax"]) == ends
    for figure, plain in ((first, alone[0]), (second, alone[1])):  # and nothing else of them is another
        assert [values_of(part)[1].tobytes() for part in figure.parts[0]] == [
            values_of(part)[1].tobytes() for part in plain.parts[0]
        ]
        for axis in ("xaxis", "yaxis"):
            settings, before = figure.parts[1].get(axis, {}), plain.parts[1].get(axis, {})
            other = {name for name in settings if str(settings[name]) != str(before.get(name))}
            assert other <= {"range", "autorangeoptions"}


@pytest.mark.parametrize("style", CORE)
def test_the_same_run_twice_differs_nowhere(style):
    comparison = Comparison.of(run(style, "same"), run(style, "same"))
    selection = look(comparison)[0][1]
    for name, (_view, panel) in PANELS.items():
        if panel.compares or not shows(name, comparison.trace) or panel.alone(selection):
            continue
        less = picture_of_two(panel, *look(comparison), comparison, "difference")
        if isinstance(less, SmallMultiples):
            assert not np.asarray(less.values).any()
        elif isinstance(less, Diagram):
            assert not any(part.value for part in less.parts)
        else:
            assert all(not np.nan_to_num(values_of(part)[1]).any() for part in less.parts[0]), name


def test_the_same_next_token_is_explained_in_both():
    comparison = two("rope", "edited")
    for target in (1, 4, 30):
        selection = Selection(query=6, target=target, rival=2).within(comparison.trace)
        there = selection_in_other(comparison, selection)
        assert explained(comparison.other, there) == explained(comparison.trace, selection)
        assert there.query == comparison.alignment.partners[6]


def test_what_only_one_of_two_models_has_is_told():
    comparison = Comparison.of(run("rope", "same"), run("gpt", "same"))
    panel = PANELS["positions-angles"][1]
    (first, _there), words = look(comparison), "nothing of the kind"
    assert words in picture_of_two(panel, first, None, comparison, "b").words
    assert words in picture_of_two(panel, first, None, comparison, "difference").words
    assert not isinstance(picture_of_two(panel, first, None, comparison, "a"), Instead)
    assert picture_of_two(panel, None, None, comparison, "a") is None
