"""Products with matrices of weights."""

import sys
import tracemalloc
import warnings
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.analysis.embedding import nearest_tokens
from explorer.analysis.logit_lens import project_to_vocabulary
from explorer.explain.captured import check_captured_value
from explorer.state.selection import Selection
from explorer.tracing import numpy_arrays, weight_matrices
from explorer.tracing.capture import capture
from explorer.tracing.numpy_arrays import StoredWeights
from explorer.tracing.weight_matrices import StoredMatrix, iter_chunks, linear, linear_by_chunks
from model.transformer_lm import TransformerLM
from tests.panels import PANELS, subject
from tests.subtest_loops import subtest_each


@pytest.fixture
def weight() -> np.ndarray:
    """Return a read-only weight matrix (N, D), as a model's weights are."""
    weight = np.random.default_rng(0).normal(size=(37, 16)).astype(np.float32)
    weight.flags.writeable = False
    return weight


@subtest_each("dtype", [np.float32, np.float64])
@subtest_each("leading", [(), (5,), (2, 3)], ids=str)
@subtest_each("stored", [False, True])
def test_products_equal_whole_matrix_products(monkeypatch, weight, dtype, leading, stored):
    monkeypatch.setattr(weight_matrices, "MAX_CHUNK_BYTES", 8 * 16 * 10)  # ten rows per chunk
    matrix = StoredMatrix(weight.shape, weight.__getitem__) if stored else weight
    x = np.random.default_rng(1).normal(size=(*leading, 16)).astype(dtype)
    expected = np.einsum("...d,nd->...n", x.astype(np.float64), weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_product, by_linear = linear_by_chunks(x, matrix), linear(x, weight)
    assert by_product.dtype == by_linear.dtype == dtype
    np.testing.assert_allclose(by_product, expected, atol=1e-5 if dtype == np.float32 else 1e-13)
    np.testing.assert_allclose(by_linear, expected, atol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("part", [np.s_[::-1], np.s_[::2, ::-1], np.s_[:0], np.s_[:, None]], ids=str)
def test_linear_accepts_any_view(weight, part):
    x = np.random.default_rng(1).normal(size=(6, 16)).astype(np.float32)[part]
    np.testing.assert_allclose(linear(x, weight[::-1]), x @ weight[::-1].T, atol=1e-5)
    np.testing.assert_allclose(linear(x, weight[:0]), x @ weight[:0].T)


@pytest.fixture
def half(tiny_lm) -> TransformerLM:
    return deepcopy(tiny_lm).bfloat16()


def test_stored_matrix_is_indexed_like_numpy(half):
    state_dict, weights = half.state_dict(), StoredWeights(half)
    matrix, whole = weights["lm_head.weight"], state_dict["lm_head.weight"].float().numpy()
    assert isinstance(matrix, StoredMatrix) and matrix.shape == whole.shape and len(matrix) == len(whole)
    for index in (3, -1, np.int64(4), slice(2, 9), [5, 1, 5], np.array([7, 0]), (slice(None), 3), (2, slice(1, 4)), ()):
        part = matrix[index]
        assert part.dtype == np.float32
        np.testing.assert_array_equal(part, whole[index])
    np.testing.assert_array_equal(np.asarray(matrix), whole)
    assert weights.keys() == state_dict.keys() and "lm_head.weight" in weights and "none" not in weights


def test_vectors_and_float32_weights_are_read_only(tiny_lm, half):
    for lm in (tiny_lm, half):
        vector = StoredWeights(lm)["final_norm.weight"]
        assert vector.dtype == np.float32 and not vector.flags.writeable
    matrix = StoredWeights(tiny_lm)["lm_head.weight"]
    assert np.shares_memory(matrix, tiny_lm.lm_head.weight.detach().numpy()) and not matrix.flags.writeable
    with pytest.raises(TypeError):
        StoredWeights(half)["lm_head.weight"][0, 0] = 1


@pytest.mark.parametrize("most", [1, 400, 1 << 20])
def test_chunks_cover_requested_rows(half, monkeypatch, most):
    monkeypatch.setattr(weight_matrices, "MAX_CHUNK_BYTES", most)
    matrix = StoredWeights(half)["lm_head.weight"]
    for rows in (slice(None), slice(3, 10), slice(5, 6), slice(4, 4)):
        blocks = list(iter_chunks(matrix, rows))
        np.testing.assert_array_equal(np.concatenate([*(block for _, block in blocks), matrix[:0]]), matrix[()][rows])
        assert [rows_slice.stop - rows_slice.start for rows_slice, _ in blocks] == [len(block) for _, block in blocks]
        assert [rows_slice.start for rows_slice, _ in blocks] == [0, *(rows_slice.stop for rows_slice, _ in blocks)][
            : len(blocks)
        ]
        assert all(8 * block.size <= most or len(block) == 1 for _, block in blocks)
    for x in (np.random.default_rng(0).normal(size=(2, 3, matrix.shape[1])), np.ones(matrix.shape[1], np.float32)):
        np.testing.assert_allclose(linear_by_chunks(x, matrix), x @ matrix[()].T, rtol=1e-5)
        assert linear_by_chunks(x, matrix).dtype == x.dtype


@pytest.fixture
def large(tiny_config) -> TransformerLM:
    """Return a model with a table of 24 MB in bfloat16, 48 MB in float32: far more than its traces."""
    torch.manual_seed(0)
    lm = TransformerLM(replace(tiny_config, vocab_size=50_000, d_model=240, num_heads=3, d_ff=64)).bfloat16().eval()
    return lm.requires_grad_(False)


@pytest.mark.exhaustive
def test_analyses_copy_no_whole_table(large, monkeypatch):
    monkeypatch.setattr(weight_matrices, "MAX_CHUNK_BYTES", 1 << 20)
    sizes_read, trace = [], capture(large, [1, 2, 3])
    table = large.lm_head.weight.numel()

    def recording_as_array(tensor, as_array=numpy_arrays.as_array):
        sizes_read.append(tensor.numel())
        return as_array(tensor)

    monkeypatch.setattr("explorer.tracing.numpy_arrays.as_array", recording_as_array)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    assert len(trace.weights["lm_head.weight"][[3, 4]]) == 2
    assert project_to_vocabulary(trace, trace["final_norm"][[0]]).shape == (1, 50_000)
    nearest_tokens(trace, 3, 5)
    assert (
        check_captured_value(trace, "embed").is_within_tolerance
        and check_captured_value(trace, "blocks.1.ffn.out").is_within_tolerance
    )
    assert check_captured_value(trace, "logits").is_within_tolerance
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert max(sizes_read) <= table / 50
    assert peak < 8 * 50_000 * 3 * 6 + (8 << 20) < 4 * table  # some arrays of logits, and parts


@pytest.mark.exhaustive
def test_figures_read_no_whole_table(large, monkeypatch):
    monkeypatch.setattr(weight_matrices, "MAX_CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(StoredMatrix, "__array__", lambda *args, **options: pytest.fail("a matrix was copied as it is"))
    trace, table, sizes_read = capture(large, [1, 2, 3, 4]), large.lm_head.weight.numel(), []

    def recording_as_array(tensor, as_array=numpy_arrays.as_array):
        sizes_read.append(tensor.numel())
        return as_array(tensor)

    monkeypatch.setattr("explorer.tracing.numpy_arrays.as_array", recording_as_array)
    for name, (view, panel) in PANELS.items():
        if (
            view.is_applicable(trace)
            and panel.is_applicable(trace)
            and not panel.compared_run
            and "patching" not in name
        ):
            selection = Selection(query=2, key=1).clamp_to_trace(trace)
            panel.draw(subject(panel, trace), selection)
            if panel.verify:
                panel.verify(subject(panel, trace), selection)
    assert max(sizes_read) < table / 20


def test_trace_holds_no_copy_of_weights(large):
    one = capture(large, [1])
    stored = sum(weight.nbytes for weight in large.state_dict().values())
    held = sum(sys.getsizeof(one.weights[name]) for name in one.weights)
    assert held < stored / 100
