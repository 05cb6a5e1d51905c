import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer.analysis.positions import (
    context_position_embeddings,
    cosines_by_distance,
    position_cosines,
    sinusoidal_cosine,
    sinusoidal_embeddings,
    token_and_position_norms,
)
from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from model.layers.positions import SinusoidalPositionalEmbedding

ADDING = ["gpt", "learned"]


@pytest.fixture(params=ADDING)
def adding(trace_of, request):
    """Return a run of each kind of model that adds position embeddings."""
    return trace_of(request.param)


def test_waves_are_those_that_the_model_adds():
    added = SinusoidalPositionalEmbedding(50, 16)(torch.arange(50)).numpy()
    assert_allclose(sinusoidal_embeddings(np.arange(50), 16), added, atol=1e-6)


def test_the_run_has_the_first_of_the_contexts_vectors(adding):
    assert_allclose(context_position_embeddings(adding)[: len(adding)], adding["position_embed"], atol=1e-6)
    assert len(context_position_embeddings(adding)) == adding.config.context_length


def test_cosines_of_waves_depend_on_the_distance_alone(trace_of):
    trace = trace_of("gpt")
    cosines, closed_form = cosines_by_distance(trace), sinusoidal_cosine(np.arange(len(trace)), trace.config.d_model)
    for part in (cosines.minimum, cosines.mean, cosines.maximum):
        assert_allclose(part, closed_form, atol=1e-6)


def test_cosines_of_learned_vectors_do_not(trace_of):
    cosines = cosines_by_distance(trace_of("learned"))
    assert (cosines.maximum - cosines.minimum).max() > 0.05
    assert (cosines.minimum <= cosines.mean + 1e-9).all() and (cosines.mean <= cosines.maximum + 1e-9).all()


def test_cosines_are_torchs(adding):
    vectors = torch.tensor(adding["position_embed"], dtype=torch.float64)
    expected = torch.cosine_similarity(vectors[:, None], vectors, dim=-1)
    assert_allclose(position_cosines(adding), expected, atol=1e-6)


def test_a_shifted_run_looks_at_later_waves(lms, trace_of):
    trace = trace_of("gpt")
    shifted = capture(lms["gpt"], trace.token_ids, parse_interventions("position_embed*shift*3"))
    assert_allclose(position_cosines(shifted), position_cosines(trace), atol=1e-6)
    assert_allclose(context_position_embeddings(shifted)[3 : 3 + len(trace)], shifted["position_embed"], atol=1e-6)


def test_what_was_taken_away_has_no_direction(lms, trace_of):
    trace = trace_of("gpt")
    assert (
        position_cosines(capture(lms["gpt"], trace.token_ids, parse_interventions("position_embed*zero"))) == 0
    ).all()


def test_lengths_are_those_of_the_sum_and_its_parts(adding, lms):
    token, position, total = token_and_position_norms(adding)
    token_vectors = adding["embed"] - adding["position_embed"]
    assert_allclose(token, np.linalg.norm(token_vectors, axis=-1), rtol=1e-4)
    assert_allclose(position, np.linalg.norm(adding["position_embed"], axis=-1), rtol=1e-6)
    assert_allclose(total, np.linalg.norm(adding["embed"], axis=-1), rtol=1e-6)
