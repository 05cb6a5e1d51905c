"""The KV cache view's values equal those in the model's own KV cache."""

import numpy as np
import pytest
import torch

from explorer.analysis.attention import (
    cached_norms,
    cached_norms_all_heads,
    cached_tap,
    megabytes_stored,
    positions_computed,
    step_flops,
)
from model.layers.attention import KVCache
from tests.exhaustive import first_in_core
from tests.subtest_loops import each_style


@each_style
def test_captured_keys_and_values_equal_cache_entries(capture_trace, lms, style):
    trace, lm = capture_trace(style), lms[style]
    cache = KVCache(lm.config)
    with torch.inference_mode():
        for token_id in trace.token_ids:  # one step per token
            lm(torch.tensor([[token_id]]), cache)
    for layer in range(lm.config.num_layers):
        for index, vector in enumerate("kv"):
            entries = cache.entries[layer, index, 0, :, : len(trace)].numpy()  # (G, T, d)
            np.testing.assert_allclose(trace[cached_tap(trace, layer, vector)], entries, atol=1e-5)
            lengths = cached_norms(trace, layer, vector)
            np.testing.assert_allclose(lengths, np.sqrt((entries**2).sum(-1)), atol=1e-5)
            whole = np.sqrt((entries**2).sum((0, 2)))
            np.testing.assert_allclose(cached_norms_all_heads(trace, vector)[layer], whole, atol=1e-5)


@pytest.mark.parametrize("style", first_in_core(["grouped", "rope"]))
def test_megabytes_match_model_cache(lms, style):
    config, positions = lms[style].config, np.arange(1, 8)
    of_each = 4 * KVCache(config).entries[..., :1, :].numel()  # bytes of a position
    np.testing.assert_allclose(megabytes_stored(config, positions), positions * of_each / 1e6)
    of_own = of_each * (config.num_heads // config.kv_heads)
    np.testing.assert_allclose(megabytes_stored(config, positions, shared=False), positions * of_own / 1e6)


@pytest.mark.parametrize("steps", [1, 2, 9])
def test_computed_positions_accumulate_only_without_cache(steps):
    cached, uncached = positions_computed(steps)
    assert cached.tolist() == list(range(1, steps + 1))
    assert uncached.tolist() == [sum(range(n + 1)) for n in range(1, steps + 1)]


def test_uncached_step_costs_all_previous_steps(tiny_config):
    costs = [step_flops(tiny_config, position) for position in range(5)]
    assert costs[0][0] == costs[0][1]
    for position in range(1, 5):
        assert costs[position][1] == costs[position - 1][1] + costs[position][0]
        attention = 4 * tiny_config.num_layers * tiny_config.d_model  # one more key to attend to
        assert costs[position][0] - costs[position - 1][0] == attention
