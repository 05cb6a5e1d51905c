"""A pretrained model of another project is shown like ours, and its figures are verified."""

from pathlib import Path

import pytest

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from model.checkpoint import load_checkpoint
from tests.panels import PANELS, subject

MODEL = Path(__file__).parents[2] / "data" / "stories260K" / "stories260K.bin"


@pytest.fixture(scope="module")
def pretrained():
    return load_checkpoint(MODEL)


@pytest.fixture(scope="module")
def trace(pretrained):
    lm, tokenizer = pretrained
    return capture(lm, [*tokenizer.bos_ids, *tokenizer.encode("Once upon a time, é")], tokenizer=tokenizer)


def test_pretrained_model_uses_its_tokenizer(trace):
    assert trace.tokens == ("<s>", " Once", " upon", " a", " time", ",", " ", "é")


def test_figures_are_drawn_and_verified(trace):
    selection, marks = Selection(layer=2, head=3, query=5, key=2).clamp_to_trace(trace), []
    for view, panel in PANELS.values():
        if not panel.compared_run and view.is_applicable(trace) and panel.is_applicable(trace):
            assert panel.draw(subject(panel, trace), selection) is not None
            marks += [panel.verify(subject(panel, trace), selection)] if panel.verify else []
    assert len(marks) > 20 and "off" not in [mark.state for mark in marks if mark]
