"""Runs whose values are computed when they are looked at are drawn as any other, and their marks say so."""

from dataclasses import replace
from functools import cache

import pytest
from numpy.testing import assert_allclose

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from tests.panels import PANELS, each_panel_and_style, run_of, subject
from tests.specimens import models, tokenizer

from .every_picture import numbers_sent

ANEW = "values inside a block were computed anew when looked at"


@cache
def on_demand(style: str, run: Trace) -> Trace:
    """The same run, of which little was kept."""
    lm = models()[style]
    some = capture(lm, run.token_ids, run.edits, tokenizer=tokenizer(), most_bytes=0)
    return replace(some, baseline=run.baseline and on_demand(style, run.baseline))


@each_panel_and_style()
@pytest.mark.exhaustive
def test_every_panel_is_drawn_and_vouched_for(name, style, length):
    _view, panel = PANELS[name]
    whole = run_of(name, style, length)
    some = on_demand(style, whole)
    selection = Selection(layer=1, head=2, query=length - 2, key=3, rival=2).within(whole)
    assert selection == Selection(layer=1, head=2, query=length - 2, key=3, rival=2).within(some)
    drawn = [numbers_sent(panel.draw(subject(panel, run), selection)) for run in (whole, some)]
    assert_allclose(*drawn, rtol=1e-3, atol=2e-4)
    if panel.mark:
        marks = [panel.mark(subject(panel, run), selection) for run in (whole, some)]
        assert marks[0].state == marks[1].state != "off"
        assert ANEW not in marks[0].details and (ANEW in marks[1].details) == (marks[1].state == "recomputed")
