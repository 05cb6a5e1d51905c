"""Runs whose values are computed when they are looked at are drawn as any other, and their marks say so."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from numpy.testing import assert_allclose

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.web.answers.view_contents import packed
from tests.drawn_parts import unpacked
from tests.panels import PANELS, each_panel_and_style, run_of, subject
from tests.specimens import models, tokenizer

ANEW = "values inside a block were computed anew when looked at"


@cache
def on_demand(style: str, run: Trace) -> Trace:
    """The same run, of which little was kept."""
    lm = models()[style]
    some = capture(lm, run.token_ids, run.edits, tokenizer=tokenizer(), most_bytes=0)
    return replace(some, baseline=run.baseline and on_demand(style, run.baseline))


def numbers(value) -> Iterator[float]:
    """All in a JSON value, in order; none of what is written in a text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)


def sent(picture) -> list:
    """All numbers that the browser gets to draw."""
    found = packed(picture)
    found = list(map(json.loads, found)) if isinstance(picture, go.Figure) else json.loads(json.dumps(found))
    return list(numbers(unpacked(found)))


@each_panel_and_style()
@pytest.mark.exhaustive
def test_every_panel_is_drawn_and_vouched_for(name, style, length):
    _view, panel = PANELS[name]
    whole = run_of(name, style, length)
    some = on_demand(style, whole)
    selection = Selection(layer=1, head=2, query=length - 2, key=3, rival=2).within(whole)
    assert selection == Selection(layer=1, head=2, query=length - 2, key=3, rival=2).within(some)
    drawn = [sent(panel.draw(subject(panel, run), selection)) for run in (whole, some)]
    assert_allclose(*drawn, rtol=1e-3, atol=2e-4)
    if panel.mark:
        marks = [panel.mark(subject(panel, run), selection) for run in (whole, some)]
        assert marks[0].state == marks[1].state != "off"
        assert ANEW not in marks[0].details and (ANEW in marks[1].details) == (marks[1].state == "recomputed")
