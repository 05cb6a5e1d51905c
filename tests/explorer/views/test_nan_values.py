"""Figures of runs with NaN and infinity: all are drawn; test_verification.py checks the warnings."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from explorer.analysis.embedding import principal_components
from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import VIEWS, run_difference_figures
from explorer.views.view import View
from explorer.web.browser_api.page_contents import figure_payload
from tests.panels import PANELS, capture_panel_run, each_panel_and_style, read_values, subject
from tests.sample_models import capture_edited_style, capture_style
from tests.subtest_loops import each_style, subtest_each

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns of NaN and infinity

with_unchanged = Comparison.with_unchanged


def fill_with_nan(value: np.ndarray) -> np.ndarray:
    return np.full_like(value, np.nan)


def spoil_some(value: np.ndarray) -> np.ndarray:
    """Return a copy with a NaN in the middle and an infinity at the end."""
    spoiled = value.copy()
    spoiled[tuple(size // 2 for size in value.shape)] = np.nan
    spoiled.flat[-1] = np.inf
    return spoiled


def with_spoiled(trace: Trace, name: str, spoil) -> Trace:
    return replace(trace, values=trace.values | {name: spoil(trace[name])})


@each_panel_and_style(every=6)
@pytest.mark.exhaustive
def test_figures_are_drawn_with_nan(name, style, length):
    """Each value that the figure reads is spoiled in turn."""
    panel, run = PANELS[name][1], capture_panel_run(name, style, length)
    for spoil, fields in (
        (spoil_some, {"query": 11, "key": 5, "tap": "logits"}),
        (fill_with_nan, {"layer": 1, "head": 2, "query": 6, "dim": 9, "rival": 2}),
    ):
        selection = Selection().replace(**fields).clamp_to_trace(run)
        for tap in read_values(name, run, selection)[0]:
            trace = with_spoiled(run, tap, spoil)
            assert figure_payload(panel.draw(subject(panel, trace), selection))
            if panel.inspect:
                with suppress(PointNotFoundError):
                    panel.inspect(
                        subject(panel, trace), selection, ClickedPoint(0, 0, layer=0, head=0, curve=0, item=0)
                    )


@each_style
@subtest_each("view", VIEWS)
def test_formulas_are_written_with_nan(view, style):
    check_formulas(view, capture_style(style))


@pytest.mark.exhaustive
@each_style
@subtest_each("view", VIEWS)
def test_formulas_of_edited_runs_are_written_with_nan(view, style):
    check_formulas(view, capture_edited_style(style))


def check_formulas(view: View, run: Trace):
    for tap in run.values if view.is_applicable(run) else ():
        for spoil in (fill_with_nan, spoil_some):
            trace = with_spoiled(run, tap, spoil)
            if view.is_comparison and not trace.baseline:
                continue
            assert view.formula(
                subject(view, trace), Selection(layer=1, tap=tap, query=11, key=5).clamp_to_trace(trace)
            )


def test_principal_components_of_nan_are_nan():
    components = principal_components(np.array([[1.0, 2.0], [np.nan, 0.0], [3.0, 5.0]]))
    assert np.isnan(components.points).all() and np.isnan(components.shares).all() and not components.directions.any()


@pytest.mark.exhaustive
def test_nan_is_not_reported_as_unchanged():
    trace = capture_edited_style("rope")
    logits = trace["logits"].copy()
    logits[4] = np.nan
    fig = run_difference_figures.surprisal_difference_bars(
        with_unchanged(replace(trace, values=trace.values | {"logits": logits})), 3
    )
    assert "nan" in fig.layout.meta["alt"] and not fig.layout.annotations
    pattern = np.full_like(trace["blocks.1.attn.pattern"][0], np.nan)
    assert run_difference_figures.unchanged_attention_reason(with_unchanged(trace), 1, 0, pattern) == ""
