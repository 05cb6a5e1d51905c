"""Figures of lazy runs equal those of full runs, and their verification says that values were recomputed."""

from dataclasses import replace
from functools import cache

import pytest
from numpy.testing import assert_allclose

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from tests.panels import PANELS, capture_panel_run, each_panel_and_style, subject
from tests.sample_models import models, tokenizer

from .figure_checks import figure_numbers

RECOMPUTED_NOTE = "values inside a block were recomputed from its input when you looked at them"


@cache
def make_lazy_run(style: str, run: Trace) -> Trace:
    """Return the same run with few stored values."""
    lm = models()[style]
    lazy = capture(lm, run.token_ids, run.edits, tokenizer=tokenizer(), max_bytes=0)
    return replace(lazy, baseline=run.baseline and make_lazy_run(style, run.baseline))


@each_panel_and_style(every=3)
@pytest.mark.exhaustive
def test_lazy_figures_equal_full_ones_and_are_verified(name, style, length):
    _view, panel = PANELS[name]
    whole = capture_panel_run(name, style, length)
    lazy = make_lazy_run(style, whole)
    selection = Selection(layer=1, head=2, query=length - 2, key=3, rival=2).clamp_to_trace(whole)
    assert selection == Selection(layer=1, head=2, query=length - 2, key=3, rival=2).clamp_to_trace(lazy)
    numbers = [figure_numbers(panel.draw(subject(panel, run), selection)) for run in (whole, lazy)]
    assert_allclose(*numbers, rtol=1e-3, atol=2e-4)
    if panel.verify:
        marks = [panel.verify(subject(panel, run), selection) for run in (whole, lazy)]
        assert marks[0].state == marks[1].state != "off"
        assert RECOMPUTED_NOTE not in marks[0].details and (RECOMPUTED_NOTE in marks[1].details) == (
            marks[1].state == "recomputed"
        )
