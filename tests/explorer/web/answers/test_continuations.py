"""How likely continuations are, against passes of the model from scratch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.state.branches import Branch
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.state.selection import Selection
from explorer.tracing.runs import Runs
from explorer.web.answers.continuations import Continuations
from model.generation.autoregressive import UncachedLogits


@pytest.fixture(scope="module")
def continuations(library) -> Continuations:
    return Continuations(library)


def bits_from_scratch(lm, run: Run) -> list[float]:
    """Each generated token's surprisal: the generator's own logits, one pass a token."""
    logits, ids = UncachedLogits(lm), list(run.token_ids)
    found = []
    for place in range(len(run.prompt), len(ids)):
        log_p = torch.tensor(logits(ids[:place])).double().log_softmax(-1)
        found.append(-log_p[ids[place]].item() / np.log(2))
    return found


@pytest.mark.parametrize("tokens", [1, 12, 29, 60], ids="{} generated".format)
def test_each_token_is_scored_as_the_generator_saw_it(continuations, lms, style, tokens):
    """Beyond the context of 32, too, where the window moves on."""
    run = Run(style, (5, 6, 7), tuple(i * 7 % 300 for i in range(tokens)))
    np.testing.assert_allclose(continuations.of(run), bits_from_scratch(lms[style], run), atol=1e-4)


def test_a_run_that_fits_is_scored_from_the_trace_on_show(continuations, library):
    run = Run("rope", (5, 6, 7), (8, 9))
    trace = Runs(library).trace(run)
    continuations.compute(run)
    assert library.trace("rope", run.token_ids) is trace


def test_a_changed_model_scores_otherwise(continuations):
    run = Run("rope", (5, 6, 7), (8, 9))
    changed = Run.parse(run.as_dict() | {"edits": "rope.angles*zero"})
    assert not np.allclose(continuations.of(run), continuations.of(changed))


def test_all_paths_are_scored_but_those_of_no_tokens(continuations):
    branches = (Branch((8, 9)), Branch((8, 9), "beam"), Branch((10**6,)), Branch((4,)))
    question = PageState(Run("rope", (5, 6, 7), (8,)), Selection(), branches)
    assert set(continuations.surprisals(question)) == {(8,), (8, 9), (4,)}
    assert set(continuations.surprisals(replace(question, run=Run("rope", (5,)), branches=()))) == set()
