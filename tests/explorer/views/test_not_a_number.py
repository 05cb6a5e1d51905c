"""A run with numbers that are none is drawn all the same; that its marks warn, test_marks.py asks."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from explorer.analysis.embedding import principal_components
from explorer.explain.point import Point
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import VIEWS, change
from explorer.views.experiments.effects import text_change
from explorer.web.answers.view_contents import packed
from tests.panels import PANELS, drawn_from, each_panel_and_style, run_of, subject
from tests.specimens import edited_trace_of, trace_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of what is asked here

with_unchanged = Comparison.with_unchanged


def all_of(value: np.ndarray) -> np.ndarray:
    return np.full_like(value, np.nan)


def one_of(value: np.ndarray) -> np.ndarray:
    """With a NaN in the middle and an infinite number at the end."""
    spoiled = value.copy()
    spoiled[tuple(size // 2 for size in value.shape)] = np.nan
    spoiled.flat[-1] = np.inf
    return spoiled


def with_spoiled(trace: Trace, name: str, spoil) -> Trace:
    return replace(trace, values=trace.values | {name: spoil(trace[name])})


@pytest.mark.parametrize("spoil", [one_of, pytest.param(all_of, marks=pytest.mark.exhaustive)])
@each_panel_and_style(every=3)
@pytest.mark.exhaustive
def test_every_picture_is_drawn(name, style, length, spoil):
    """Whichever of the values it is drawn from holds them."""
    panel, run = PANELS[name][1], run_of(name, style, length)
    for place in ({"query": 11, "key": 5, "tap": "logits"}, {"layer": 1, "head": 2, "query": 6, "dim": 9, "rival": 2}):
        selection = Selection(**place).within(run)
        for tap in drawn_from(name, run, selection)[0]:
            trace = with_spoiled(run, tap, spoil)
            assert packed(panel.draw(subject(panel, trace), selection))
            if panel.inspect:
                with suppress(NoSuchPoint):
                    panel.inspect(subject(panel, trace), selection, Point(0, 0, layer=0, head=0, curve=0, item=0))


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
@pytest.mark.parametrize("changed", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_every_formula_is_told(view, style, changed):
    run = (edited_trace_of if changed else trace_of)(style)
    for tap in run.values if view.applies_to(run) else ():
        for spoil in (all_of, one_of):
            trace = with_spoiled(run, tap, spoil)
            if view.compares and not trace.baseline:
                continue
            assert view.formula(subject(view, trace), Selection(layer=1, tap=tap, query=11, key=5).within(trace))


def test_no_direction_is_told_of_what_is_not_a_number():
    found = principal_components(np.array([[1.0, 2.0], [np.nan, 0.0], [3.0, 5.0]]))
    assert np.isnan(found.points).all() and np.isnan(found.shares).all() and not found.directions.any()


@pytest.mark.exhaustive
def test_what_is_not_a_number_is_not_told_to_be_the_same():
    trace = edited_trace_of("rope")
    logits = trace["logits"].copy()
    logits[4] = np.nan
    fig = text_change(with_unchanged(replace(trace, values=trace.values | {"logits": logits})), 3)
    assert "nan" in fig.layout.meta["alt"] and not fig.layout.annotations
    pattern = np.full_like(trace["blocks.1.attn.pattern"][0], np.nan)
    assert change.why_none(with_unchanged(trace), 1, 0, pattern) == ""
