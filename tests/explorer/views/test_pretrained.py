"""A model that was trained elsewhere is shown like ours, and every picture of it is vouched for."""

from pathlib import Path

import pytest

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from model.checkpoint import load_checkpoint
from tests.panels import PANELS, subject

MODEL = Path(__file__).parents[2] / "data" / "stories260K" / "stories260K.bin"


@pytest.fixture(scope="module")
def loaded():
    return load_checkpoint(MODEL)


@pytest.fixture(scope="module")
def trace(loaded):
    lm, tokenizer = loaded
    return capture(lm, [*tokenizer.beginning, *tokenizer.encode("Once upon a time, é")], tokenizer=tokenizer)


def test_its_tokens_are_those_of_its_own_tokenizer(trace):
    assert trace.tokens == ("<s>", " Once", " upon", " a", " time", ",", " ", "é")


def test_every_picture_of_it_is_drawn_and_vouched_for(trace):
    selection, marks = Selection(layer=2, head=3, query=5, key=2).within(trace), []
    for view, panel in PANELS.values():
        if not panel.compares and view.applies_to(trace) and panel.applies_to(trace):
            assert panel.draw(subject(panel, trace), selection) is not None
            marks += [panel.mark(subject(panel, trace), selection)] if panel.mark else []
    assert len(marks) > 20 and "off" not in [mark.state for mark in marks if mark]
