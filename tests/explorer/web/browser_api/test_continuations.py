"""Surprisals of continuations, compared with forward passes from scratch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.state.page_state import Branch, PageState, RunRequest
from explorer.state.selection import Selection
from explorer.tracing.run_service import RunService
from explorer.web.browser_api.page_contents import ContinuationSurprisals
from model.generation.autoregressive import NextLogitsWithoutCache
from tests.subtest_loops import each_style, subtest_each


@pytest.fixture(scope="module")
def continuations(library) -> ContinuationSurprisals:
    return ContinuationSurprisals(library)


def surprisals_from_scratch(lm, run: RunRequest) -> list[float]:
    """Return each generated token's surprisal in bits, from one uncached forward pass per token."""
    logits, ids = NextLogitsWithoutCache(lm), list(run.token_ids)
    surprisals = []
    for position in range(len(run.prompt), len(ids)):
        log_p = torch.tensor(logits(ids[:position])).double().log_softmax(-1)
        surprisals.append(-log_p[ids[position]].item() / np.log(2))
    return surprisals


@each_style
@subtest_each("tokens", [1, 12, 29, 60], ids="{} generated".format)
def test_token_surprisals_match_uncached_passes(continuations, lms, style, tokens):
    """Includes texts beyond the context of 32, for which the window moves."""
    run = RunRequest(style, (5, 6, 7), tuple(i * 7 % 300 for i in range(tokens)))
    np.testing.assert_allclose(
        continuations.surprisals_of_run(run), surprisals_from_scratch(lms[style], run), atol=1e-4
    )


def test_run_within_context_uses_visible_trace(continuations, library):
    run = RunRequest("rope", (5, 6, 7), (8, 9))
    trace = RunService(library).trace(run)
    continuations.compute_surprisals(run)
    assert library.trace("rope", run.token_ids) is trace


def test_interventions_change_surprisals(continuations):
    run = RunRequest("rope", (5, 6, 7), (8, 9))
    changed = RunRequest.parse(run.as_dict() | {"edits": "rope.angles*zero"})
    assert not np.allclose(continuations.surprisals_of_run(run), continuations.surprisals_of_run(changed))


def test_all_paths_with_tokens_are_scored(continuations):
    branches = (Branch((8, 9)), Branch((8, 9), "beam"), Branch((10**6,)), Branch((4,)))
    question = PageState(RunRequest("rope", (5, 6, 7), (8,)), Selection(), branches)
    assert set(continuations.surprisals(question)) == {(8,), (8, 9), (4,)}
    assert set(continuations.surprisals(replace(question, run=RunRequest("rope", (5,)), branches=()))) == set()
