"""Figures computed by jobs: progress is reported, and a job can stop after any piece."""

import numpy as np
import pytest

from explorer.state.selection import Selection
from explorer.tracing import jobs
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import Job, RequestBudget, ResultNotReadyError, result_num_bytes
from tests.panels import JOB_PANELS, PANELS, capture_panel_run, shows, subject
from tests.sample_models import STYLES, capture_style, models, tokenizer
from tests.subtest_loops import each_style

CHOSEN = Selection(layer=1, head=2, query=9, key=4)


@pytest.fixture(autouse=True)
def empty_results(monkeypatch):
    monkeypatch.setattr(jobs, "RESULTS", jobs.LRUCache(64 << 20, result_num_bytes))


def make_panel_jobs(style: str) -> dict[str, Job]:
    """Return the jobs of the panels that wait for one, by panel."""
    trace = capture_style(style)
    other = capture(models()[style], (*trace.token_ids[:5], 70, *trace.token_ids[6:]), tokenizer=tokenizer())
    jobs = {}
    for name, (_view, panel) in PANELS.items():
        of_two = panel.compared_run == "other"
        if not of_two and not shows(name, capture_panel_run(name, style)):
            continue
        try:
            with RequestBudget(10**9, 1e6).activate():
                run = Comparison.from_traces(trace, other) if of_two else subject(panel, capture_panel_run(name, style))
                panel.draw(run, CHOSEN.clamp_to_trace(trace))
        except ResultNotReadyError as not_yet:
            jobs[name] = not_yet.job
    return jobs


@each_style
def test_only_job_panels_need_jobs(style):
    assert set(make_panel_jobs(style)) == JOB_PANELS


@pytest.mark.exhaustive
@each_style
def test_jobs_report_progress_and_leave_no_hooks(lms, style):
    panel_jobs = make_panel_jobs(style)
    lm, begin = lms[style], list(STYLES).index(style) % 3
    for name, job in list(panel_jobs.items())[begin::3]:  # the styles take turns
        done = []
        for units in job.steps():
            done.append(units)
            assert not any(module._forward_hooks or module._forward_pre_hooks for module in lm.modules()), name
        assert len(done) > 1 and done == sorted(done) and done[-1] == job.units, name


@each_style
def test_jobs_can_stop_after_a_piece(lms, style):
    panel_jobs = make_panel_jobs(style)
    lm = lms[style]
    before = capture(lm, capture_style(style).token_ids)["logits"]
    for name, job in panel_jobs.items():
        pieces = job.steps()
        next(pieces)
        pieces.close()
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in lm.modules()), name
    np.testing.assert_array_equal(capture(lm, capture_style(style).token_ids)["logits"], before)
