import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.embedding import embedding_parts, nearest_tokens, principal_components, residual_at_depth
from tests import layouts
from tests.subtest_loops import each_style, subtest_each

QUERY = 7


def principal_directions(vectors: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return principal directions (n, D) and their shares of the variance, from the covariance matrix."""
    sizes, directions = np.linalg.eigh(np.cov(vectors.astype(np.float64), rowvar=False))
    return directions[:, ::-1].T[:n], sizes[::-1][:n] / sizes.sum()


@each_style
def test_parts_sum_to_captured_embedding(trace):
    for query in range(len(trace)):
        parts = embedding_parts(trace, query)
        assert_allclose(parts.total, trace["embed"][query], atol=1e-6)
        assert parts.error == pytest.approx(np.abs(parts.total - trace["embed"][query]).max())
        assert parts.error < 1e-6


@each_style
def test_parts_equal_model_vectors(trace, style, lms):
    lm, parts = lms[style], embedding_parts(trace, QUERY)
    row = lm.token_embedding.weight[trace.token_ids[QUERY]]
    assert_array_equal(parts.row, row)
    assert parts.scale == pytest.approx({"learned": math.sqrt(24), "grouped": 3}.get(style, 1))
    assert (parts.position is not None) is (trace.config.position in ("sinusoidal", "learned"))
    if parts.position is not None:
        assert_array_equal(parts.position, lm.position_embedding(torch.tensor(QUERY)))


@each_style
def test_error_reveals_altered_embedding(trace):
    wrong = trace["embed"].copy()
    wrong[QUERY, 3] += 0.25
    parts = embedding_parts(replace(trace, values={**trace.values, "embed": wrong}), QUERY)
    assert parts.error == pytest.approx(0.25, abs=1e-6)


@each_style
def test_nearest_tokens_have_largest_cosines(trace, style, lms):
    token_id = trace.token_ids[QUERY]
    table = lms[style].token_embedding.weight.double()
    cosines = torch.cosine_similarity(table, table[token_id][None]).index_fill(0, torch.tensor(token_id), -2)
    expected = cosines.topk(15)
    ids, similarities = nearest_tokens(trace, token_id, 15)
    assert ids.tolist() == expected.indices.tolist()
    assert_allclose(similarities, expected.values, atol=1e-6)
    assert token_id not in ids


@each_style
def test_nearest_tokens_include_all_and_zero_row_has_cosine_0(trace):
    table = np.ones((5, 24), np.float32)
    table[2] = 0
    table[4] = -3
    small = replace(trace, weights={"token_embedding.weight": table})
    ids, cosines = nearest_tokens(small, 1, 99)
    assert ids.tolist() == [0, 3, 2, 4]
    assert_allclose(cosines, [1, 1, 0, -1], atol=1e-6)
    assert nearest_tokens(small, 2, 9)[1].tolist() == [0] * 4


@each_style
def test_residual_depths_run_from_embedding_to_unembedding(trace, style, lms):
    assert_array_equal(residual_at_depth(trace, 0), trace["embed"])
    assert_array_equal(residual_at_depth(trace, 1), trace["blocks.1.resid_pre"])
    lm, last = lms[style], torch.tensor(residual_at_depth(trace, 2))
    logits = layouts.softcap(lm.lm_head(lm.final_norm(last)).numpy(), lm.config.logit_cap)
    assert_allclose(logits, trace["logits"], atol=1e-4)


@each_style
@subtest_each("depth", [0, 1, 2])
def test_principal_components_are_eigenvectors_of_covariance(trace, depth):
    vectors = residual_at_depth(trace, depth)
    components = principal_components(vectors)
    directions, shares = principal_directions(vectors, 2)
    assert_allclose(components.shares, shares, atol=1e-6)
    assert_allclose(np.abs((components.directions * directions).sum(-1)), 1, atol=1e-5)
    assert_allclose(components.points, (vectors - vectors.mean(0)) @ components.directions.T, atol=1e-4)
    assert_allclose(components.points.var(0) / vectors.astype(float).var(0).sum(), components.shares, atol=1e-6)


@each_style
def test_largest_entry_of_component_is_positive(trace):
    components = principal_components(trace["embed"])
    for direction in components.directions:
        assert direction[np.abs(direction).argmax()] > 0
    negated = principal_components(-trace["embed"])
    assert_allclose(negated.directions, components.directions, atol=1e-6)
    assert_allclose(negated.points, -components.points, atol=1e-5)


@each_style
def test_all_components_reconstruct_vectors(trace):
    vectors = trace["embed"].astype(float)
    components = principal_components(vectors, n=11)  # 12 vectors less their mean have 11 directions
    assert_allclose(components.points @ components.directions + vectors.mean(0), vectors, atol=1e-6)
    assert components.shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("vectors", [np.ones((1, 4)), np.ones((5, 4)), np.zeros((3, 1))], ids=["one", "same", "thin"])
def test_equal_vectors_have_no_principal_direction(vectors):
    components = principal_components(vectors)
    assert components.points.shape == (len(vectors), 2)
    assert not components.points.any() and not components.directions.any() and not components.shares.any()


def test_two_vectors_have_one_principal_direction():
    components = principal_components(np.array([[1.0, 2, 3], [1, 5, 7]]))
    assert_allclose(components.points, [[-2.5, 0], [2.5, 0]], atol=1e-9)
    assert_allclose(components.shares, [1, 0], atol=1e-9)
