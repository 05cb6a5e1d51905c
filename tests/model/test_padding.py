"""Sequences of unequal length in one batch have the same logits as alone."""

import pytest
import torch

from model.config import CHOICES
from model.layers.attention import KVCache, padding_mask
from tests.subtest_loops import subtest_each

POSITIONS = [{"position": position} for position in CHOICES["position"]]
POSITIONS.append({"rope_layout": "half_split", "num_kv_heads": 1, "qk_norm": True})


def left_pad(token_ids: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return ids, padding and positions of both sequences; the second has `length` tokens and is left-padded."""
    width = token_ids.shape[1]
    ids = torch.stack((token_ids[0], token_ids[1].roll(width - length)))
    padding = padding_mask(torch.tensor([width, length]), width).flip(1)
    positions = torch.arange(width) - torch.tensor([[0], [width - length]])
    return ids, padding, positions.clamp(min=0)


@torch.no_grad()
@subtest_each("watched", [[], ["blocks.0.attn.pattern", "blocks.1.attn.scores"]], ids=["fused", "watched"])
@subtest_each("choices", POSITIONS, ids=str)
def test_padded_sequences_match_unpadded_ones(make_lm, token_ids, hook_modules, choices, watched):
    lm = make_lm(**choices)
    whole, short = lm(token_ids[:1]), lm(token_ids[1:, :8])
    with hook_modules(lm, dict.fromkeys(watched, lambda module, inputs, output: None)):
        right = lm(token_ids, padding=padding_mask(torch.tensor([20, 8]), 20))
        ids, padding, positions = left_pad(token_ids, 8)
        left = lm(ids, token_positions=positions, padding=padding)
    for both, tokens in ((right, slice(0, 8)), (left, slice(12, 20))):
        torch.testing.assert_close(both[:1], whole, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(both[1:, tokens], short, atol=1e-4, rtol=1e-4)
        assert both.isfinite().all()


@torch.no_grad()
@pytest.mark.parametrize("choices", POSITIONS, ids=str)
def test_left_padded_batch_continues_in_cache(make_lm, token_ids, choices):
    """Prompts of 16 and 4 tokens, then four more each."""
    lm = make_lm(**choices)
    ids, padding, positions = left_pad(token_ids, 8)
    cache, parts = KVCache(lm.config, batch_size=2), []
    for part in ([*range(16)], [16], [17], [18, 19]):
        end = part[-1] + 1
        parts.append(lm(ids[:, part], cache, token_positions=positions[:, part], padding=padding[:, :end]))
    logits = torch.cat(parts, dim=1)
    torch.testing.assert_close(logits[:1], lm(token_ids[:1]), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(logits[1:, 12:], lm(token_ids[1:, :8]), atol=1e-4, rtol=1e-4)


def test_missing_padding_or_positions_change_logits(make_lm, token_ids):
    lm = make_lm(position="learned")
    ids, padding, positions = left_pad(token_ids, 8)
    short = lm(token_ids[1:, :8])
    for half in ({"token_positions": positions}, {"padding": padding}):
        assert (lm(ids, **half)[1:, 12:] - short).abs().max() > 0.1


def test_padded_batch_has_finite_gradients(make_lm, token_ids):
    ids, padding, positions = left_pad(token_ids, 8)
    for watched in (False, True):
        lm = make_lm()
        if watched:
            lm.blocks[0].attn.pattern.register_forward_hook(lambda module, inputs, output: None)
        lm(ids, token_positions=positions, padding=padding)[padding].logsumexp(-1).mean().backward()
        assert all(parameter.grad.isfinite().all() for parameter in lm.parameters())
        assert lm.blocks[0].attn.q_proj.weight.grad.abs().max() > 0
