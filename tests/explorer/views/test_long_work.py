"""Of every picture that takes longer than a click: how far it is can be told, and it ends after any piece."""

import numpy as np
import pytest

from explorer.state.selection import Selection
from explorer.tracing import jobs
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import Job, NotYet, num_bytes
from explorer.tracing.work import Work
from tests.panels import JOBS, PANELS, run_of, shows, subject
from tests.specimens import tokenizer, trace_of

CHOSEN = Selection(layer=1, head=2, query=9, key=4)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(jobs, "RESULTS", jobs.LRU(64 << 20, num_bytes))


@pytest.fixture
def waiting(lms, style) -> dict[str, Job]:
    """Panels that wait for a job, and those."""
    trace = trace_of(style)
    other = capture(lms[style], (*trace.token_ids[:5], 70, *trace.token_ids[6:]), tokenizer=tokenizer())
    found = {}
    for name, (_view, panel) in PANELS.items():
        of_two = panel.compares == "other"
        if not of_two and not shows(name, run_of(name, style)):
            continue
        try:
            with Work(10**9, 1e6).counted():
                run = Comparison.of(trace, other) if of_two else subject(panel, run_of(name, style))
                panel.draw(run, CHOSEN.within(trace))
        except NotYet as not_yet:
            found[name] = not_yet.job
    return found


def test_the_long_ones_wait_to_be_asked_for(waiting):
    assert set(waiting) == JOBS


@pytest.mark.exhaustive
def test_each_tells_how_far_it_is_and_leaves_the_model_alone_between_pieces(lms, style, waiting):
    lm = lms[style]
    for name, job in waiting.items():
        done = []
        for units in job.pieces():
            done.append(units)
            assert not any(module._forward_hooks or module._forward_pre_hooks for module in lm.modules()), name
        assert len(done) > 1 and done == sorted(done) and done[-1] == job.units, name


def test_each_ends_after_any_piece_and_leaves_nothing(lms, style, waiting):
    lm = lms[style]
    before = capture(lm, trace_of(style).token_ids)["logits"]
    for name, job in waiting.items():
        pieces = job.pieces()
        next(pieces)
        pieces.close()
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in lm.modules()), name
    np.testing.assert_array_equal(capture(lm, trace_of(style).token_ids)["logits"], before)
