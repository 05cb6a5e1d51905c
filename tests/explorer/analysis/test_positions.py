import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer.analysis.positions import by_distance, context_vectors, cosine_of_waves, cosines, lengths, waves
from explorer.state.interventions import parse_edits
from explorer.tracing.capture import capture
from model.layers.sinusoidal import SinusoidalPositionalEmbedding

ADDING = ["gpt", "learned"]


@pytest.fixture(params=ADDING)
def adding(trace_of, request):
    """A run of each kind of model that adds vectors for positions."""
    return trace_of(request.param)


def test_waves_are_those_that_the_model_adds():
    added = SinusoidalPositionalEmbedding(50, 16)(torch.arange(50)).numpy()
    assert_allclose(waves(np.arange(50), 16), added, atol=1e-6)


def test_the_run_has_the_first_of_the_contexts_vectors(adding):
    assert_allclose(context_vectors(adding)[: len(adding)], adding["position_embed"], atol=1e-6)
    assert len(context_vectors(adding)) == adding.config.context_length


def test_cosines_of_waves_depend_on_the_distance_alone(trace_of):
    trace = trace_of("gpt")
    found, alone = by_distance(trace), cosine_of_waves(np.arange(len(trace)), trace.config.d_model)
    for part in (found.least, found.mean, found.most):
        assert_allclose(part, alone, atol=1e-6)


def test_cosines_of_learned_vectors_do_not(trace_of):
    found = by_distance(trace_of("learned"))
    assert (found.most - found.least).max() > 0.05
    assert (found.least <= found.mean + 1e-9).all() and (found.mean <= found.most + 1e-9).all()


def test_cosines_are_torchs(adding):
    vectors = torch.tensor(adding["position_embed"], dtype=torch.float64)
    expected = torch.cosine_similarity(vectors[:, None], vectors, dim=-1)
    assert_allclose(cosines(adding), expected, atol=1e-6)


def test_a_shifted_run_looks_at_later_waves(lms, trace_of):
    trace = trace_of("gpt")
    shifted = capture(lms["gpt"], trace.token_ids, parse_edits("position_embed*shift*3"))
    assert_allclose(cosines(shifted), cosines(trace), atol=1e-6)
    assert_allclose(context_vectors(shifted)[3 : 3 + len(trace)], shifted["position_embed"], atol=1e-6)


def test_what_was_taken_away_has_no_direction(lms, trace_of):
    trace = trace_of("gpt")
    assert (cosines(capture(lms["gpt"], trace.token_ids, parse_edits("position_embed*zero"))) == 0).all()


def test_lengths_are_those_of_the_sum_and_its_parts(adding, lms):
    token, position, total = lengths(adding)
    own = adding["embed"] - adding["position_embed"]
    assert_allclose(token, np.linalg.norm(own, axis=-1), rtol=1e-4)
    assert_allclose(position, np.linalg.norm(adding["position_embed"], axis=-1), rtol=1e-6)
    assert_allclose(total, np.linalg.norm(adding["embed"], axis=-1), rtol=1e-6)
