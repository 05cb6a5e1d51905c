"""Products with matrices of weights."""

import warnings

import numpy as np
import pytest

from explorer.tracing import weight_matrices
from explorer.tracing.weight_matrices import StoredMatrix, linear, linear_by_chunks


@pytest.fixture
def weight() -> np.ndarray:
    """Return a read-only weight matrix (N, D), as a model's weights are."""
    weight = np.random.default_rng(0).normal(size=(37, 16)).astype(np.float32)
    weight.flags.writeable = False
    return weight


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("leading", [(), (5,), (2, 3)], ids=str)
@pytest.mark.parametrize("stored", [False, True])
def test_products_are_those_with_the_whole_matrix_in_the_type_of_both(monkeypatch, weight, dtype, leading, stored):
    monkeypatch.setattr(weight_matrices, "MAX_CHUNK_BYTES", 8 * 16 * 10)  # ten rows a part
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
def test_what_is_multiplied_may_be_any_view(weight, part):
    x = np.random.default_rng(1).normal(size=(6, 16)).astype(np.float32)[part]
    np.testing.assert_allclose(linear(x, weight[::-1]), x @ weight[::-1].T, atol=1e-5)
    np.testing.assert_allclose(linear(x, weight[:0]), x @ weight[:0].T)
