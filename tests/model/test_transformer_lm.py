import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from model.config import CHOICES
from model.layers.attention import KVCache, softmax
from model.transformer_lm import TransformerLM
from tests.exhaustive import pairwise_params
from tests.subtest_loops import subtest_each


def test_weight_names_and_shapes(tiny_lm, tiny_config):
    v, d, f = tiny_config.vocab_size, tiny_config.d_model, tiny_config.d_ff
    expected = {"token_embedding.weight": (v, d), "final_norm.weight": (d,), "lm_head.weight": (v, d)}
    for i in range(tiny_config.num_layers):
        expected |= {f"blocks.{i}.{norm}.weight": (d,) for norm in ("attn_norm", "ffn_norm")}
        expected |= {f"blocks.{i}.attn.{name}_proj.weight": (d, d) for name in "qkvo"}
        expected |= {f"blocks.{i}.ffn.{name}_proj.weight": (f, d) for name in ("gate", "up")}
        expected |= {f"blocks.{i}.ffn.down_proj.weight": (d, f)}
    assert {name: tuple(weight.shape) for name, weight in tiny_lm.state_dict().items()} == expected


@pytest.mark.parametrize("tie_embeddings", [False, True])
def test_fresh_model_predicts_near_uniformly(tiny_config, token_ids, tie_embeddings):
    lm = TransformerLM(replace(tiny_config, tie_embeddings=tie_embeddings)).eval()
    loss = F.cross_entropy(lm(token_ids)[:, :-1].flatten(0, 1), token_ids[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(tiny_config.vocab_size), abs=0.25)


def test_tied_embeddings_share_one_table(tiny_config):
    lm = TransformerLM(replace(tiny_config, tie_embeddings=True))
    assert lm.token_embedding.weight is lm.lm_head.weight
    assert sum(p.numel() for p in lm.parameters()) == (
        sum(p.numel() for p in TransformerLM(tiny_config).parameters()) - lm.lm_head.weight.numel()
    )


def test_no_position_sees_later_token(tiny_lm, token_ids):
    changed = token_ids.clone()
    changed[:, 12] = (changed[:, 12] + 1) % 256
    difference = (tiny_lm(changed) - tiny_lm(token_ids)).abs().amax(-1)  # (B, T)
    assert difference[:, :12].max() <= 1e-6
    assert difference[:, 12:].min() > 1e-6


def test_batch_sequences_are_independent(tiny_lm, token_ids):
    torch.testing.assert_close(tiny_lm(token_ids)[1:], tiny_lm(token_ids[1:]))


@pytest.mark.parametrize(("position", "sees_order"), [("rope", True), ("none", False)])
def test_rope_makes_order_of_tokens_matter(tiny_config, token_ids, position, sees_order):
    """Without positions the last query of one layer sees a set; with RoPE, swapping two earlier tokens matters."""
    lm = TransformerLM(replace(tiny_config, num_layers=1, position=position)).eval()
    swapped = token_ids.clone()
    swapped[:, [2, 9]] = token_ids[:, [9, 2]]
    difference = (lm(swapped)[:, -1] - lm(token_ids)[:, -1]).abs().max().item()
    assert (difference > 1e-4) == sees_order
    assert (lm.rope is not None) == sees_order


def test_whole_context_can_be_used(tiny_lm, tiny_config):
    ids = torch.zeros(1, tiny_config.context_length, dtype=torch.long)
    assert tiny_lm(ids).shape == (1, tiny_config.context_length, tiny_config.vocab_size)


@subtest_each(
    ("position", "watched", "built_there"), pairwise_params(CHOICES["position"], [False, True], [True, False])
)
@torch.no_grad()
def test_shapes_are_computed_on_meta_device(tiny_config, position, watched, built_there, hook_modules):
    """Tensors on the meta device have shapes but no values."""
    with torch.device("meta" if built_there else "cpu"):
        lm = TransformerLM(replace(tiny_config, position=position)).to("meta")
    ids, cache = (
        torch.zeros(2, 5, dtype=torch.long, device="meta"),
        KVCache(tiny_config, 2, device="meta"),
    )
    with hook_modules(lm, {"blocks.0.attn.pattern": lambda *_: None} if watched else {}):
        assert lm(ids).shape == (2, 5, tiny_config.vocab_size)
        assert lm(ids, cache).shape == lm(ids, cache).shape
    assert cache.length == 10


@subtest_each(("position", "rope_layout"), pairwise_params(CHOICES["position"], CHOICES["rope_layout"]))
@torch.no_grad()
def test_bfloat16_rounds_everything_except_positions(tiny_config, position, rope_layout, record):
    config = replace(tiny_config, context_length=512, position=position, rope_layout=rope_layout)
    lm = TransformerLM(config).eval()
    ids = torch.randint(config.vocab_size, (1, 512))
    exact = record(lm, ids, lm.taps)
    rounded = record(lm.bfloat16(), ids, lm.taps)
    in_float32 = {name for name, value in rounded.items() if value.dtype == torch.float32}
    assert in_float32 == {"rope": {"rope.angles"}, "sinusoidal": {"position_embed"}}.get(position, set())
    for name in in_float32:
        assert torch.equal(rounded[name], exact[name])
    # bfloat16 has 8 bits: for values of size 4 the last one is 1/32; a rounded angle would be off by up to 1 radian.
    torch.testing.assert_close(
        rounded["blocks.0.attn.pattern"].float(), exact["blocks.0.attn.pattern"], atol=0.05, rtol=0
    )
    torch.testing.assert_close(rounded["logits"].float(), exact["logits"], atol=0.15, rtol=0)


@pytest.mark.parametrize("length", [0, 33])
def test_invalid_length_raises_error(tiny_lm, length):
    with pytest.raises(ValueError, match=f"the model sees 1 to 32 positions, got {length} tokens after 0"):
        tiny_lm(torch.zeros(1, length, dtype=torch.long))


def test_last_only_returns_last_logits(tiny_lm, token_ids):
    torch.testing.assert_close(tiny_lm(token_ids, last_only=True), tiny_lm(token_ids)[:, -1:])


def test_taps_are_consistent_with_formulas(tiny_lm, tiny_config, token_ids, record):
    """Each tap has the value that its name says, computed from earlier taps."""
    names = tiny_lm.taps
    for parameter in tiny_lm.parameters():
        parameter.data *= 1.5  # so that gains differ from 1 and patterns from uniform
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
def test_hooks_on_attention_do_not_change_logits(tiny_lm, token_ids, hook_modules, watched):
    unwatched = tiny_lm(token_ids)
    with hook_modules(tiny_lm, {watched: lambda module, inputs, output: None}):
        assert (tiny_lm(token_ids) - unwatched).abs().max() <= 1e-5


def test_zeroing_z_ablates_head(tiny_lm, token_ids, hook_modules):
    """The result is that of a model whose `o_proj` does not read that head."""

    def zero_head_1(tap, inputs, z):
        return z * torch.tensor([1.0, 0.0, 1.0])[:, None, None]

    intact = tiny_lm(token_ids)
    with hook_modules(tiny_lm, {"blocks.0.attn.z": zero_head_1}):
        ablated = tiny_lm(token_ids)
    tiny_lm.blocks[0].attn.o_proj.weight.data[:, 8:16] = 0
    torch.testing.assert_close(ablated, tiny_lm(token_ids))
    assert (ablated - intact).abs().max() > 1e-3


def test_device_is_device_of_weights(tiny_lm):
    assert tiny_lm.device == torch.device("cpu")
    assert tiny_lm.to("meta").device == torch.device("meta")


@torch.no_grad()
@pytest.mark.parametrize(
    ("choices", "tolerates"),
    [
        ({"position": "rope"}, True),
        ({"position": "rope", "rope_layout": "half_split", "num_kv_heads": 1}, True),
        ({"position": "none"}, True),
        ({"position": "sinusoidal"}, False),
        ({"position": "learned"}, False),
    ],
    ids=str,
)
def test_rope_logits_do_not_depend_on_absolute_positions(make_lm, token_ids, choices, tolerates):
    lm = make_lm(**choices)
    positions = torch.arange(token_ids.shape[1])
    moved = lm(token_ids, token_positions=positions + torch.tensor([[7], [12]]))
    difference = (moved - lm(token_ids)).abs().max().item()
    assert difference <= 1e-4 if tolerates else difference > 0.1


@torch.no_grad()
@pytest.mark.parametrize("position", ["rope", "sinusoidal", "learned"])
def test_positions_default_to_order(make_lm, token_ids, position):
    lm, in_order = make_lm(position=position), torch.arange(token_ids.shape[1])
    assert torch.equal(lm(token_ids, token_positions=in_order[None]), lm(token_ids))
    torch.testing.assert_close(lm(token_ids, token_positions=in_order.expand(2, -1)), lm(token_ids))
    assert (lm(token_ids, token_positions=in_order.flip(0)[None]) - lm(token_ids)).abs().max() > 0.1


@torch.no_grad()
@pytest.mark.parametrize("style", [{}, {"norm": "layernorm", "position": "sinusoidal", "ffn": "relu"}], ids=str)
def test_scaled_embeddings_are_multiplied_by_root_of_width(make_lm, token_ids, record, style):
    lm = make_lm(**style, scale_embeddings=True, tie_embeddings=True)
    x = record(lm, token_ids, ["embed", "final_norm", "logits"])
    expected = lm.token_embedding.weight[token_ids] * math.sqrt(24)
    if style:
        expected = expected + lm.position_embedding(torch.arange(20))  # not scaled
    torch.testing.assert_close(x["embed"], expected)
    torch.testing.assert_close(x["logits"], x["final_norm"] @ lm.token_embedding.weight.T)


def test_dropout_acts_on_embedding_during_training(make_lm, token_ids, record):
    lm = make_lm(dropout=0.5)
    x = record(lm.train(), token_ids, ["embed", "blocks.0.resid_pre"])
    dropped = x["blocks.0.resid_pre"] == 0
    assert dropped.float().mean().item() == pytest.approx(0.5, abs=0.06)
    torch.testing.assert_close(x["blocks.0.resid_pre"][~dropped], 2 * x["embed"][~dropped])
    x = record(lm.eval(), token_ids, ["embed", "blocks.0.resid_pre"])
    assert torch.equal(x["embed"], x["blocks.0.resid_pre"])


def test_post_norm_model_has_no_final_norm(make_lm, token_ids, record):
    lm = make_lm(norm_placement="post")
    x = record(lm, token_ids, ["blocks.1.ffn_norm", "final_norm", "logits"])
    assert torch.equal(x["final_norm"], x["blocks.1.ffn_norm"])
    torch.testing.assert_close(x["logits"], x["final_norm"] @ lm.lm_head.weight.T)
