"""A mark tells a picture of wrong numbers from one of right ones: whatever captured value is wrong that it draws.

Which values a picture draws is seen as it is drawn, not asked of its mark.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from explorer.analysis.attention import PATTERNS
from explorer.analysis.heads import HEAD_SCORES
from explorer.analysis.lens import LENSES
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from tests.panels import PANELS, drawn_from, each_panel_and_style, run_of, subject
from tests.specimens import kinds_edited_trace_of, stream_edited_trace_of


def selections(name: str, trace: Trace) -> list[Selection]:
    """Two places, and whatever else of a selection a panel draws differently."""
    last = len(trace) - 1
    choices = {
        "attention-pattern": [{"pattern": kind} for kind in PATTERNS],
        "attention-scores": [{"head_score": score} for score in HEAD_SCORES],
        "prediction-lens": [{"lens": kind} for kind in LENSES],
        "activations-heatmap": [{"tap": tap} for tap in trace.values if not tap.startswith("blocks.0")],
        "activations-histogram": [{"tap": "logits"}, {"tap": "blocks.1.attn.k"}],
        "tokens-spread": [{"depth": depth} for depth in range(trace.config.num_layers + 1)],
    }.get(name, [{}, {}])
    places = [{"query": last, "key": last // 2}, {"layer": 1, "head": 2, "query": last // 2, "key": 0, "rival": 2}]
    return [Selection(**choice, **places[i % 2]).within(trace) for i, choice in enumerate(choices)]


def with_a_hole(value: np.ndarray) -> np.ndarray:
    """With a NaN in the middle."""
    spoiled = value.copy()
    spoiled[tuple(size // 2 for size in value.shape)] = np.nan
    return spoiled


SPOIL = (lambda value: value * np.float32(1.01), with_a_hole)


@pytest.fixture(scope="module")
def spoiled():
    """`spoiled(trace, name)`: the run with one value 1 % too large, and with a NaN in it; kept, as their checks are."""

    @cache
    def spoiled(trace: Trace, name: str) -> list[Trace]:
        return [replace(trace, values=trace.values | {name: spoil(trace[name])}) for spoil in SPOIL]

    return spoiled


@each_panel_and_style()
def test_a_mark_warns_of_every_wrong_value_that_is_drawn(spoiled, name, style, length):
    _, panel = PANELS[name]
    trace = run_of(name, style, length)
    for selection in selections(name, trace):
        read, read_of_baseline = drawn_from(name, trace, selection)
        wrong = {tap: spoiled(trace, tap) for tap in read if trace[tap].any()}
        for tap in read_of_baseline:
            wrong[f"unchanged {tap}"] = [replace(trace, baseline=run) for run in spoiled(trace.baseline, tap)]
        for tap, runs in wrong.items():
            assert [panel.mark(subject(panel, run), selection).state for run in runs] == ["off"] * len(SPOIL), (
                tap,
                selection,
            )
        assert wrong or panel.mark(subject(panel, trace), selection).state == "unchecked"


@each_panel_and_style(lengths=[1, 12, 32])
def test_no_mark_warns_of_what_is_right(name, style, length):
    trace = run_of(name, style, length)
    marks = [PANELS[name][1].mark(subject(PANELS[name][1], trace), selection) for selection in selections(name, trace)]
    assert {mark.state for mark in marks} <= {"recomputed", "unchecked"}, marks


@each_panel_and_style(every=3)
@pytest.mark.exhaustive
def test_nor_of_a_run_that_is_changed_along_its_stream(name, style, length):
    """What edits multiply on the way from a part to the logits is in the parts, and in what a depth is read as."""
    for trace in (stream_edited_trace_of(style, length), kinds_edited_trace_of(style, length)):
        run = subject(PANELS[name][1], trace)
        marks = [PANELS[name][1].mark(run, selection) for selection in selections(name, trace)]
        assert {mark.state for mark in marks} <= {"recomputed", "unchecked"}, marks
