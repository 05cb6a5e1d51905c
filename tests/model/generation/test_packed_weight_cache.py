import gc

import pytest
import torch

from model.generation.incremental_decoder import IncrementalDecoder, PackedWeightCache
from model.layers.attention import KVCache
from model.layers.basic_layers import Linear


def make_layers(*outputs: int) -> list[Linear]:
    torch.manual_seed(0)
    return [Linear(8, d_out, False) for d_out in outputs]


def test_stacked_weights_are_concatenated_and_scaled_by_gain():
    query, key = make_layers(3, 5)
    gain = torch.rand(8)
    copy = PackedWeightCache().get_stacked([query, key], gain)
    torch.testing.assert_close(copy, torch.cat([query.weight, key.weight]).detach() * gain)
    assert copy.stride() == (1, 8)
    assert torch.equal(PackedWeightCache().get_stacked([key]), key.weight)


def test_same_request_returns_same_copy():
    copies, (query, key) = PackedWeightCache(), make_layers(3, 5)
    first, other = copies.get_stacked([query]), copies.get_stacked([key])
    assert copies.get_stacked([query]) is first
    assert copies.get_stacked([key]) is other
    assert copies.num_bytes == 4 * 8 * (3 + 5)


@torch.no_grad()
def swap_two_weights(weight: torch.Tensor):
    weight.data[0, 2], weight.data[0, 3] = weight.data[0, 3].item(), weight.data[0, 2].item()


@pytest.mark.parametrize(
    "change",
    [
        lambda query, key, gain: key.weight.data[4, 7].mul_(1.001),
        lambda query, key, gain: swap_two_weights(query.weight),
        lambda query, key, gain: gain.data[3].add_(0.1),
        lambda query, key, gain: setattr(key, "weight", torch.nn.Parameter(key.weight * 2)),
    ],
)
def test_changed_weights_are_copied_again(change):
    copies, (query, key), gain = PackedWeightCache(), make_layers(3, 5), torch.rand(8)
    copies.get_stacked([query, key], gain)
    change(query, key, gain)
    expected = torch.cat([query.weight, key.weight]).detach() * gain
    torch.testing.assert_close(copies.get_stacked([query, key], gain), expected)


def test_least_recently_used_copy_is_evicted():
    copies, (first_layer, second_layer, third_layer) = PackedWeightCache(max_bytes=2 * 4 * 8 * 4), make_layers(4, 4, 4)
    first, second = copies.get_stacked([first_layer]), copies.get_stacked([second_layer])
    copies.get_stacked([first_layer])
    copies.get_stacked([third_layer])
    assert copies.num_bytes == copies.max_bytes
    assert copies.get_stacked([first_layer]) is first
    assert copies.get_stacked([second_layer]) is not second
    del first_layer, second_layer
    gc.collect()
    assert copies.num_bytes <= 4 * 8 * 4


def test_copy_larger_than_limit_is_kept_alone():
    copies, (first_layer, second_layer) = PackedWeightCache(max_bytes=8), make_layers(4, 4)
    copies.get_stacked([first_layer])
    assert copies.get_stacked([second_layer]) is copies.get_stacked([second_layer])
    assert copies.num_bytes == 4 * 8 * 4


@torch.inference_mode()
def test_new_decoder_uses_changed_weights(make_lm, token_ids):
    lm = make_lm()
    IncrementalDecoder(lm)
    for name, weight in lm.named_parameters():
        if "norm" in name or "_proj" in name:
            weight.data.mul_(1.5)
    decoder, cache = IncrementalDecoder(lm), KVCache(lm.config)
    for token_id in token_ids[0].tolist():
        logits = decoder(token_id, cache)
    torch.testing.assert_close(logits, lm(token_ids[:1])[0, -1], atol=1e-4, rtol=1e-4)
