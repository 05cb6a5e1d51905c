import base64
import json
from weakref import ref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from explorer.tracing.trace import LazyLayerStack
from explorer.views.view import HeadHeatmaps
from explorer.web.widgets.figure import MAX_PIXELS, HeadGridWidget, max_pool
from tests.subtest_loops import each_style, subtest_each


def unpack_pixels(packed: dict) -> np.ndarray:
    """Return the pixels of a packed grid (L, H, P, P), without the padding of its rows."""
    size = packed["pixels"]
    heads = np.stack([np.frombuffer(base64.b64decode(head), np.uint8).reshape(size, -1) for head in packed["data"]])
    assert heads.shape[-1] == -(-size // 4) * 4
    assert not heads[..., size:].any()
    return heads[..., :size].reshape(packed["layers"], packed["heads"], size, size)


def test_pixel_is_maximum_of_its_block():
    values = np.arange(25.0).reshape(1, 1, 5, 5)
    assert_array_equal(max_pool(values, 2)[0, 0], [[6, 8, 9], [16, 18, 19], [21, 23, 24]])
    assert_array_equal(max_pool(values, 1), values)
    assert_array_equal(max_pool(values, 5), [[[[24]]]])
    assert_array_equal(max_pool(values, 9), [[[[24]]]])


@subtest_each("tokens", [1, 7, 96, 97, 192, 193, 256])
def test_max_pool_matches_loop(tokens):
    values = np.random.default_rng(0).random((1, 2, tokens, tokens))
    block = -(-tokens // MAX_PIXELS)
    pooled = max_pool(values, block)
    assert pooled.shape[-1] == -(-tokens // block) <= MAX_PIXELS
    for i in range(pooled.shape[-1]):
        for j in range(0, pooled.shape[-1], 7):
            square = values[:, :, i * block : (i + 1) * block, j * block : (j + 1) * block]
            assert_array_equal(pooled[:, :, i, j], square.max((-2, -1)))


def test_values_are_packed_as_bytes():
    values = np.array([0, 0.001, 0.5, 1], np.float32).reshape(1, 1, 2, 2)
    packed = HeadGridWidget.pack(HeadHeatmaps(values, "Two tokens."))
    assert_array_equal(unpack_pixels(packed)[0, 0], [[0, 0], [128, 255]])
    del packed["data"]
    sizes = {"layers": 1, "heads": 1, "tokens": 2, "block": 1, "pixels": 2}
    assert packed == sizes | {"alt": "Two tokens.", "signed": False}


@pytest.mark.parametrize("block", [1, 2])
def test_signed_values_are_packed_from_minus_one_to_one(block):
    values = np.random.default_rng(0).uniform(-1, 1, (1, 2, 96 * block, 96 * block))
    decoded = unpack_pixels(HeadGridWidget.pack(HeadHeatmaps(values, "Differences.", signed=True))) / 255 * 2 - 1
    squares = values.reshape(1, 2, 96, block, 96, block).swapaxes(-3, -2).reshape(1, 2, 96, 96, -1)
    furthest = np.take_along_axis(squares, np.abs(squares).argmax(-1)[..., None], -1)[..., 0]
    np.testing.assert_allclose(decoded, furthest, atol=1 / 255 + 1e-6)


@each_style
def test_captured_patterns_keep_their_positions(trace):
    values = trace.stack("blocks.*.attn.pattern")
    decoded = unpack_pixels(HeadGridWidget.pack(HeadHeatmaps(values, "All heads.")))
    assert decoded.shape == (2, trace.config.num_heads, 12, 12)
    np.testing.assert_allclose(decoded / 255, values, atol=0.5 / 255 + 1e-6)


def test_large_patterns_are_pooled_to_limit_size():
    packed = HeadGridWidget.pack(HeadHeatmaps(np.zeros((12, 12, 256, 256), np.float32), "Many."))
    assert (packed["block"], packed["pixels"]) == (4, 64)
    assert sum(map(len, packed["data"])) < 1_000_000


@pytest.mark.parametrize("tokens", [128, pytest.param(1024, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.exhaustive
def test_thousand_heads_fit_a_megabyte_and_load_layer_by_layer(signed, tokens):
    references = []

    def make_layer(layer_index: int) -> np.ndarray:
        values = np.zeros((32, tokens, tokens), np.float32)
        values[layer_index, 100, layer_index] = 1
        references.append(ref(values))
        assert sum(reference() is not None for reference in references) <= 2
        return values

    packed = HeadGridWidget.pack(
        HeadHeatmaps(LazyLayerStack(32, make_layer, (32, tokens, tokens)), "All.", signed=signed)
    )
    assert len(json.dumps(packed)) <= 1 << 20
    decoded, block = unpack_pixels(packed), packed["block"]
    indices = np.argwhere(decoded > 128)
    assert indices.tolist() == [[i, i, 100 // block, i // block] for i in range(32)]
