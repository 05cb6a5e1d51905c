from dataclasses import replace

import pytest
import torch

from model.config import CHOICES, ROPE_SCALINGS, SWITCHES, RopeScaling
from model.layers.attention import KVCache
from tests.subtest_loops import subtest_each

EVERY_CHOICE = [{name: value} for name, values in CHOICES.items() for value in values]
EVERY_CHOICE += [{name: True} for name in SWITCHES] + [{"num_kv_heads": 1}]
EVERY_CHOICE += [
    {"rope_scaling": RopeScaling(kind=kind, factor=2, original_context_length=16, attention_factor=1.2)}
    for kind in ROPE_SCALINGS
    if kind != "longrope"
]


@pytest.fixture
def cache(tiny_config):
    """Cache for two sequences, filled with NaN, so that reading an entry before it is written is noticed."""
    cache = KVCache(tiny_config, batch_size=2)
    cache.entries.fill_(torch.nan)
    return cache


@torch.no_grad()
@pytest.mark.parametrize("chunks", [[20], [1] * 20, [7, 13], [19, 1], [1, 5, 1, 13]], ids=str)
def test_chunked_reading_matches_whole(tiny_lm, token_ids, cache, chunks):
    parts = [tiny_lm(chunk, cache) for chunk in token_ids.split(chunks, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), tiny_lm(token_ids), atol=1e-5, rtol=1e-5)
    assert cache.length == 20


def test_hooked_chunk_attends_to_earlier_positions(tiny_lm, token_ids, cache, record):
    name = "blocks.1.attn.pattern"
    whole = record(tiny_lm, token_ids, [name])[name]
    record(tiny_lm, token_ids[:, :12], [], cache)
    chunk = record(tiny_lm, token_ids[:, 12:], [name], cache)[name]
    torch.testing.assert_close(chunk, whole[..., 12:, :], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_context_fills_to_last_position(tiny_lm, tiny_config, cache):
    full = torch.zeros(2, tiny_config.context_length, dtype=torch.long)
    tiny_lm(full[:, :-1], cache)
    tiny_lm(full[:, :1], cache)
    assert cache.length == tiny_config.context_length
    with pytest.raises(ValueError, match="the model sees 1 to 32 positions, got 1 tokens after 32"):
        tiny_lm(full[:, :1], cache)


def test_append_stores_after_filled_positions(tiny_config, cache):
    first, second = torch.randn(2, 2, 2, 3, 4, 8)  # two chunks of keys and values (B, H, 4, d)
    keys, values = cache.append(1, *first)
    cache.length = 4
    keys, values = cache.append(1, *second)
    torch.testing.assert_close(keys, torch.cat([first[0], second[0]], dim=-2))
    torch.testing.assert_close(values, torch.cat([first[1], second[1]], dim=-2))
    assert cache.entries[0].isnan().all()


def test_extend_adds_position_in_every_layer(tiny_config):
    cache = KVCache(tiny_config)
    for position in range(tiny_config.context_length):
        for slot, keys, values in cache.extend():
            slot[:] = position
            assert keys.shape == values.shape == (3, position + 1, 8)
            assert (keys[..., 0] == torch.arange(position + 1)).all()
            assert (values[..., 0] == torch.arange(position + 1)).all()
    with pytest.raises(ValueError, match="the cache is full: it holds 32 positions"):
        cache.extend()


@torch.no_grad()
@subtest_each("choice", EVERY_CHOICE, ids=lambda choice: str(next(iter(choice.items()))))
def test_every_kind_of_model_reads_in_chunks(make_lm, token_ids, choice):
    lm = make_lm(**choice)
    cache = KVCache(lm.config, batch_size=2)
    cache.entries.fill_(torch.nan)
    parts = [lm(chunk, cache) for chunk in token_ids.split([6, 1, 1, 12], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), lm(token_ids), atol=1e-4, rtol=1e-4)


def test_fewer_kv_heads_need_less_memory(tiny_config):
    full, shared = KVCache(tiny_config), KVCache(replace(tiny_config, num_kv_heads=1))
    assert full.entries.shape == (2, 2, 1, 3, 32, 8)
    assert shared.entries.shape == (2, 2, 1, 1, 32, 8)
    assert shared.entries.nbytes * 3 == full.entries.nbytes
