"""Verification of figures: any wrong captured value that a figure draws is reported."""

import re
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from explorer.analysis.attention import PATTERNS
from explorer.analysis.head_scores import HEAD_SCORES
from explorer.analysis.logit_lens import LENSES
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import VIEWS
from tests.panels import PANELS, capture_panel_run, each_panel_and_style, read_values, subject
from tests.sample_models import capture_all_kinds_edited_style, capture_stream_edited_style


def selections(name: str, trace: Trace) -> list[Selection]:
    """Return selections of two cells, with every other choice that changes what a panel draws."""
    last = len(trace) - 1
    choices = {
        "attention-pattern": [{"pattern": kind} for kind in PATTERNS],
        "attention-scores": [{"head_score": score} for score in HEAD_SCORES],
        "prediction-lens": [{"lens": kind} for kind in LENSES],
        "activations-heatmap": [{"tap": tap} for tap in trace.values if not tap.startswith("blocks.0")],
        "activations-histogram": [{"tap": "logits"}, {"tap": "blocks.1.attn.k"}],
        "tokens-spread": [{"residual_depth": depth} for depth in range(trace.config.num_layers + 1)],
    }.get(name, [{}, {}])
    cell_fields = [{"query": last, "key": last // 2}, {"layer": 1, "head": 2, "query": last // 2, "key": 0, "rival": 2}]
    return [
        Selection().replace(**choice, **cell_fields[i % 2]).clamp_to_trace(trace) for i, choice in enumerate(choices)
    ]


def with_nan(value: np.ndarray) -> np.ndarray:
    """Return a copy with a NaN in the middle."""
    spoiled = value.copy()
    spoiled[tuple(size // 2 for size in value.shape)] = np.nan
    return spoiled


CORRUPTIONS = (lambda value: value * np.float32(1.01), with_nan)


@pytest.fixture(scope="module")
def corrupt_value():
    """Return `corrupt_value(trace, name)`: runs with the value 1 % too large, and with a NaN; cached."""

    @cache
    def with_wrong_values(trace: Trace, name: str) -> list[Trace]:
        return [
            replace(trace, values=trace.values | {name: corrupt_value(trace[name])}) for corrupt_value in CORRUPTIONS
        ]

    return with_wrong_values


@each_panel_and_style(every=4)
def test_wrong_values_fail_verification(corrupt_value, name, style, length):
    _, panel = PANELS[name]
    trace = capture_panel_run(name, style, length)
    for selection in selections(name, trace):
        read, read_of_baseline = read_values(name, trace, selection)
        wrong = {tap: corrupt_value(trace, tap) for tap in read if trace[tap].any()}
        for tap in read_of_baseline:
            wrong[f"unchanged {tap}"] = [replace(trace, baseline=run) for run in corrupt_value(trace.baseline, tap)]
        for tap, runs in wrong.items():
            assert [panel.verify(subject(panel, run), selection).state for run in runs] == ["off"] * len(CORRUPTIONS), (
                tap,
                selection,
            )
        assert wrong or panel.verify(subject(panel, trace), selection).state == "unchecked"


@each_panel_and_style(lengths=[1, 12, 32], every=2)
def test_correct_values_pass_verification(name, style, length):
    trace = capture_panel_run(name, style, length)
    marks = [
        PANELS[name][1].verify(subject(PANELS[name][1], trace), selection) for selection in selections(name, trace)
    ]
    assert {mark.state for mark in marks} <= {"recomputed", "unchecked"}, marks


OFF = re.compile(r"off by (\d[\d.]*(?:e[-−]\d+)?)")


def test_formulas_count_changes_of_run():
    """A formula that ignored the run's interventions would call a right number wrong."""
    views = [view for view in VIEWS if view.formula and not view.is_comparison]
    for style, view in product(("rope", "gpt", "grouped", "post", "sandwich"), views):
        for run in (capture_stream_edited_style(style), capture_all_kinds_edited_style(style)):
            for layer, query, head in product((0, 1), (2, 4, 9), (1, 2)):
                selection = (
                    Selection().replace(layer=layer, head=head, query=query, key=2, neuron=5).clamp_to_trace(run)
                )
                text = view.formula(run, selection) if view.is_applicable(run) else ""
                assert all(float(error.replace("−", "-")) < 1e-4 for error in OFF.findall(text)), text


@each_panel_and_style(every=6)
@pytest.mark.exhaustive
def test_stream_interventions_pass_verification(name, style, length):
    """Multiplicative edits between a component and the logits count in the components and in the lens."""
    for trace in (capture_stream_edited_style(style, length), capture_all_kinds_edited_style(style, length)):
        run = subject(PANELS[name][1], trace)
        marks = [PANELS[name][1].verify(run, selection) for selection in selections(name, trace)]
        assert {mark.state for mark in marks} <= {"recomputed", "unchecked"}, marks
