import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from model.layers.softmax import softmax
from model.transformer_lm import TransformerLM


def test_weights_lie_where_the_contract_says(tiny_lm, tiny_config):
    v, d, f = tiny_config.vocab_size, tiny_config.d_model, tiny_config.d_ff
    expected = {"token_embedding.weight": (v, d), "final_norm.weight": (d,), "lm_head.weight": (v, d)}
    for i in range(tiny_config.num_layers):
        expected |= {f"blocks.{i}.{norm}.weight": (d,) for norm in ("attn_norm", "ffn_norm")}
        expected |= {f"blocks.{i}.attn.{name}_proj.weight": (d, d) for name in "qkvo"}
        expected |= {f"blocks.{i}.ffn.{name}_proj.weight": (f, d) for name in ("gate", "up")}
        expected |= {f"blocks.{i}.ffn.down_proj.weight": (d, f)}
    assert {name: tuple(weight.shape) for name, weight in tiny_lm.state_dict().items()} == expected


@pytest.mark.parametrize("tie_embeddings", [False, True])
def test_a_fresh_model_finds_all_tokens_about_equally_likely(tiny_config, token_ids, tie_embeddings):
    lm = TransformerLM(replace(tiny_config, tie_embeddings=tie_embeddings)).eval()
    loss = F.cross_entropy(lm(token_ids)[:, :-1].flatten(0, 1), token_ids[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(tiny_config.vocab_size), abs=0.25)


def test_tied_embeddings_are_one_table(tiny_config):
    lm = TransformerLM(replace(tiny_config, tie_embeddings=True))
    assert lm.token_embedding.weight is lm.lm_head.weight
    assert sum(p.numel() for p in lm.parameters()) == (
        sum(p.numel() for p in TransformerLM(tiny_config).parameters()) - lm.lm_head.weight.numel()
    )


def test_no_position_sees_a_later_token(tiny_lm, token_ids):
    changed = token_ids.clone()
    changed[:, 12] = (changed[:, 12] + 1) % 256
    difference = (tiny_lm(changed) - tiny_lm(token_ids)).abs().amax(-1)  # (B, T)
    assert difference[:, :12].max() <= 1e-6
    assert difference[:, 12:].min() > 1e-6


def test_sequences_of_a_batch_do_not_see_each_other(tiny_lm, token_ids):
    torch.testing.assert_close(tiny_lm(token_ids)[1:], tiny_lm(token_ids[1:]))


@pytest.mark.parametrize(("position", "sees_order"), [("rope", True), ("none", False)])
def test_rope_tells_the_order_of_the_earlier_tokens(tiny_config, token_ids, position, sees_order):
    """Without positions one layer's last query sees a set; with RoPE, swapping two earlier tokens changes its sum."""
    lm = TransformerLM(replace(tiny_config, num_layers=1, position=position)).eval()
    swapped = token_ids.clone()
    swapped[:, [2, 9]] = token_ids[:, [9, 2]]
    difference = (lm(swapped)[:, -1] - lm(token_ids)[:, -1]).abs().max().item()
    assert (difference > 1e-4) == sees_order
    assert (lm.rope is not None) == sees_order


def test_every_position_of_the_context_can_be_used(tiny_lm, tiny_config):
    ids = torch.zeros(1, tiny_config.context_length, dtype=torch.long)
    assert tiny_lm(ids).shape == (1, tiny_config.context_length, tiny_config.vocab_size)


@pytest.mark.parametrize("length", [0, 33])
def test_too_many_tokens_or_none_is_an_error(tiny_lm, length):
    with pytest.raises(ValueError, match=f"the model sees 1 to 32 positions, got {length} tokens after 0"):
        tiny_lm(torch.zeros(1, length, dtype=torch.long))


def test_values_fit_together(tiny_lm, tiny_config, token_ids, record):
    """Each tap holds what its name says, computed from the taps before it."""
    names = tiny_lm.taps
    for parameter in tiny_lm.parameters():
        parameter.data *= 1.5  # so that gains are not 1 and patterns not uniform
    x = record(tiny_lm, token_ids, names)
    same = torch.testing.assert_close
    same(x["embed"], tiny_lm.token_embedding.weight[token_ids])
    hidden = torch.ones(20, 20, dtype=torch.bool).triu(1)
    stream = x["embed"]
    for i, block in enumerate(tiny_lm.blocks):
        b = {name.removeprefix(f"blocks.{i}."): value for name, value in x.items() if name.startswith(f"blocks.{i}.")}
        assert torch.equal(b["resid_pre"], stream)
        same(b["attn.scores"], b["attn.q_rot"] @ b["attn.k_rot"].mT / math.sqrt(tiny_config.d_head))
        same(b["attn.pattern"], softmax(b["attn.scores"].masked_fill(hidden, -math.inf)))
        same(b["attn.pattern"].sum(-1), torch.ones(2, 3, 20))
        assert (b["attn.pattern"][..., hidden] == 0).all()
        same(b["attn.z"], b["attn.pattern"] @ b["attn.v"])
        same(b["attn.out"], b["attn.z"].transpose(1, 2).flatten(2) @ block.attn.o_proj.weight.T)
        same(b["resid_mid"], b["resid_pre"] + b["attn.out"])
        same(b["ffn.gate"], F.silu(b["ffn.gate_pre"]))
        same(b["ffn.hidden"], b["ffn.gate"] * b["ffn.up"])
        same(b["ffn.out"], b["ffn.hidden"] @ block.ffn.down_proj.weight.T)
        same(b["resid_post"], b["resid_mid"] + b["ffn.out"])
        stream = b["resid_post"]
    same(x["final_norm"], F.rms_norm(stream, (24,), tiny_lm.final_norm.weight, eps=1e-5))
    same(x["logits"], x["final_norm"] @ tiny_lm.lm_head.weight.T)


@pytest.mark.parametrize("watched", ["blocks.0.attn.scores", "blocks.1.attn.pattern"])
def test_looking_at_the_attention_does_not_change_the_logits(tiny_lm, token_ids, hooked, watched):
    unwatched = tiny_lm(token_ids)
    with hooked(tiny_lm, {watched: lambda module, inputs, output: None}):
        assert (tiny_lm(token_ids) - unwatched).abs().max() <= 1e-5


def test_a_head_is_ablated_by_zeroing_its_z(tiny_lm, token_ids, hooked):
    """The same as a model whose `o_proj` does not read that head."""

    def zero_head_1(tap, inputs, z):
        return z * torch.tensor([1.0, 0.0, 1.0])[:, None, None]

    intact = tiny_lm(token_ids)
    with hooked(tiny_lm, {"blocks.0.attn.z": zero_head_1}):
        ablated = tiny_lm(token_ids)
    tiny_lm.blocks[0].attn.o_proj.weight.data[:, 8:16] = 0
    torch.testing.assert_close(ablated, tiny_lm(token_ids))
    assert (ablated - intact).abs().max() > 1e-3


def test_the_device_is_that_of_the_weights(tiny_lm):
    assert tiny_lm.device == torch.device("cpu")
    assert tiny_lm.to("meta").device == torch.device("meta")
