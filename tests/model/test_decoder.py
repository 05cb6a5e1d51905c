from itertools import product

import pytest
import torch

from model.config import CHOICES
from model.decoder import IncrementalDecoder
from model.kv_cache import KVCache

EVERY_MODEL = [dict(zip(CHOICES, values, strict=True)) for values in product(*CHOICES.values())]


@pytest.mark.parametrize("tie_embeddings", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("choices", EVERY_MODEL, ids=lambda choices: "-".join(choices.values()))
@pytest.mark.parametrize("prefilled", [0, 1, 13])
@torch.inference_mode()
def test_logits_are_those_of_the_model_at_every_position(make_lm, token_ids, choices, tie_embeddings, prefilled):
    lm = make_lm(**choices, tie_embeddings=tie_embeddings, norm_eps=0.1)
    ids = token_ids[:1]
    cache = KVCache(lm.config)
    if prefilled:
        lm(ids[:, :prefilled], cache)
    decoder = IncrementalDecoder(lm)
    logits = torch.stack([decoder(token_id, cache) for token_id in ids[0, prefilled:].tolist()])
    torch.testing.assert_close(logits, lm(ids)[0, prefilled:], atol=1e-4, rtol=1e-4)
    assert cache.length == ids.shape[1]


@torch.inference_mode()
def test_model_and_decoder_take_turns_on_one_cache(make_lm, token_ids):
    lm = make_lm()
    cache, decoder = KVCache(lm.config), IncrementalDecoder(lm)
    ids = token_ids[:1]
    for token_id, by_model in zip(ids[0].tolist(), [True, False, False] * 7, strict=False):
        logits = lm(torch.tensor([[token_id]]), cache)[0, -1] if by_model else decoder(token_id, cache)
    torch.testing.assert_close(logits, lm(ids)[0, -1], atol=1e-4, rtol=1e-4)


def test_a_full_cache_is_refused(make_lm):
    lm = make_lm()
    cache, decoder = KVCache(lm.config), IncrementalDecoder(lm)
    for _ in range(lm.config.context_length):
        decoder(0, cache)
    with pytest.raises(ValueError, match="the cache is full: it holds 32 positions"):
        decoder(0, cache)


def test_the_weights_are_only_read(make_lm, token_ids):
    lm = make_lm()
    before = {name: weight.clone() for name, weight in lm.state_dict().items()}
    cache, decoder = KVCache(lm.config), IncrementalDecoder(lm)
    for token_id in token_ids[0].tolist():
        decoder(token_id, cache)
    assert all((weight == before[name]).all() for name, weight in lm.state_dict().items())
