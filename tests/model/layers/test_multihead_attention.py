from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from model.layers import attention as attention_module
from model.layers.attention import KVCache, MultiHeadSelfAttention, repeat_heads, split_heads
from model.layers.basic_layers import LayerNormOverHeads, RMSNorm, RMSNormOverHeads
from model.layers.positions import RotaryPositionalEmbedding
from tests.subtest_loops import subtest_each

KINDS = {
    "plain": {},
    "bias": {"bias": True},
    "qkv_bias": {"qkv_bias": True},
    "grouped": {"num_kv_heads": 2},
    "one for all": {"num_kv_heads": 1, "bias": True},
    "qk_norm": {"qk_norm": RMSNorm},
    "half_split": {"rope_layout": "half_split"},
    "divisor and window": {"score_divisor": 0.7, "window": 3},
    "everything": {"num_kv_heads": 2, "bias": True, "qk_norm": RMSNorm, "rope_layout": "half_split"},
}


def make_attention(d_model: int = 12, num_heads: int = 3, **settings) -> MultiHeadSelfAttention:
    """Return attention with weights so large that patterns are far from uniform, and unequal biases and gains."""
    attention = MultiHeadSelfAttention(d_model, num_heads, **settings).eval()
    for parameter in attention.parameters():
        parameter.data = 3 * parameter.data if parameter.ndim == 2 else torch.rand_like(parameter) + 0.5
    return attention


@pytest.fixture
def attention():
    """Attention with 3 heads of width 4."""
    return make_attention()


each_kind = subtest_each("kind", KINDS)


@pytest.mark.parametrize("bias", [False, True], ids=["without bias", "with bias"])
def test_attention_matches_torch_multi_head_attention(bias):
    attention, x = make_attention(bias=bias), torch.randn(2, 7, 12)
    projections = attention.q_proj, attention.k_proj, attention.v_proj
    in_proj = torch.cat([projection.weight for projection in projections])
    expected, patterns = F.multi_head_attention_forward(
        *[x.transpose(0, 1)] * 3,
        embed_dim_to_check=12,
        num_heads=3,
        in_proj_weight=in_proj,
        in_proj_bias=torch.cat([projection.bias for projection in projections]) if bias else None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=attention.o_proj.weight,
        out_proj_bias=attention.o_proj.bias,
        attn_mask=torch.ones(7, 7, dtype=torch.bool).triu(1),  # True is hidden there
        average_attn_weights=False,
    )
    torch.testing.assert_close(attention(x), expected.transpose(0, 1), atol=1e-5, rtol=1e-5)

    recorded = []
    attention.pattern.register_forward_hook(lambda tap, inputs, output: recorded.append(output))
    attention(x)
    torch.testing.assert_close(recorded[0], patterns, atol=1e-5, rtol=1e-5)


@subtest_each("watched", ["scores", "pattern"])
@subtest_each("length", [1, 2, 7])
def test_hooks_do_not_change_output(attention, watched, length):
    x = torch.randn(2, length, 12)
    unwatched = attention(x)
    handle = getattr(attention, watched).register_forward_hook(lambda tap, inputs, output: None)
    assert (attention(x) - unwatched).abs().max() <= 1e-5
    handle.remove()


def test_scores_are_computed_only_with_hooks(attention, monkeypatch):
    x = torch.randn(2, 7, 12)
    monkeypatch.setattr(attention_module, "attention_scores", lambda q, k: pytest.fail("formed the scores"))
    attention(x)
    monkeypatch.undo()
    monkeypatch.setattr(attention_module, "fused_attention", lambda *args: pytest.fail("ran the fused kernel"))
    handle = attention.pattern.register_forward_hook(lambda tap, inputs, output: None)
    attention(x)
    handle.remove()
    with pytest.raises(pytest.fail.Exception, match="ran the fused kernel"):
        attention(x)


def test_hook_on_scores_changes_later_values(attention):
    """With all scores equal, each query averages the values up to its own."""
    x = torch.randn(2, 7, 12)
    z = []
    attention.scores.register_forward_hook(lambda tap, inputs, output: torch.zeros_like(output))
    attention.z.register_forward_hook(lambda tap, inputs, output: z.append(output))
    attention(x)
    v = split_heads(attention.v_proj(x), 3)
    torch.testing.assert_close(z[0], v.cumsum(-2) / torch.arange(1, 8)[:, None])


def rotation_cos_and_sin(positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return RotaryPositionalEmbedding(10.0, 4)(positions)


@each_kind
@subtest_each("padded", [False, True], ids=["whole", "padded"])
@torch.no_grad()
def test_hooks_do_not_change_output_of_any_kind(kind, padded):
    any_attention = make_attention(16, 4, **KINDS[kind])
    x, cos_and_sin = torch.randn(2, 7, 16), rotation_cos_and_sin(torch.arange(7)[None])
    padding = torch.tensor([[True] * 7, [False] * 3 + [True] * 4]) if padded else None
    unwatched = any_attention(x, cos_and_sin, padding)
    handle = any_attention.pattern.register_forward_hook(lambda tap, inputs, output: None)
    torch.testing.assert_close(any_attention(x, cos_and_sin, padding), unwatched, atol=1e-5, rtol=1e-5)
    handle.remove()
    assert unwatched.isfinite().all()


@each_kind
@subtest_each("watched", [False, True], ids=["unwatched", "watched"])
@torch.no_grad()
def test_cache_does_not_change_output_of_any_kind(kind, tiny_config, watched):
    any_attention = make_attention(16, 4, **KINDS[kind])
    config = replace(tiny_config, d_model=16, num_heads=4, num_kv_heads=any_attention.num_kv_heads)
    x, positions, cache = torch.randn(2, 7, 16), torch.arange(7)[None], KVCache(config, batch_size=2)
    if watched:
        any_attention.scores.register_forward_hook(lambda tap, inputs, output: None)
    whole, parts = any_attention(x, rotation_cos_and_sin(positions)), []
    for chunk, chunk_positions in zip(x.split([3, 1, 3], dim=1), positions.split([3, 1, 3], dim=1), strict=True):
        parts.append(any_attention(chunk, rotation_cos_and_sin(chunk_positions), None, cache, layer=1))
        cache.length += chunk.shape[1]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("num_kv_heads", [1, 2])
@pytest.mark.parametrize("bias", [False, True], ids=["without bias", "with bias"])
def test_grouped_heads_match_repeated_full_heads(num_kv_heads, bias):
    shared = make_attention(16, 4, num_kv_heads=num_kv_heads, qkv_bias=bias)
    weights = shared.state_dict()
    for name, rows in weights.items():
        if name.startswith(("k_proj", "v_proj")):
            heads = rows.unflatten(0, (num_kv_heads, 4))  # (G, d, ...)
            weights[name] = torch.cat([heads[h * num_kv_heads // 4] for h in range(4)])
    full, x = make_attention(16, 4, qkv_bias=bias), torch.randn(2, 7, 16)
    full.load_state_dict(weights)
    cos_and_sin = rotation_cos_and_sin(torch.arange(7)[None])
    torch.testing.assert_close(shared(x, cos_and_sin), full(x, cos_and_sin), atol=1e-5, rtol=1e-5)
    assert shared.k_proj.weight.shape == shared.v_proj.weight.shape == (num_kv_heads * 4, 16)


def test_repeat_heads_repeats_neighbours():
    x = torch.randn(2, 3, 5, 4)
    assert torch.equal(repeat_heads(x, 6)[:, 4:], x[:, [2, 2]])
    assert repeat_heads(x, 3) is x


def test_biases_exist_where_configured():
    def projections_with_bias(**settings) -> str:
        attention = MultiHeadSelfAttention(12, 3, **settings)
        return "".join(name for name in "qkvo" if getattr(attention, f"{name}_proj").bias is not None)

    assert [projections_with_bias(), projections_with_bias(qkv_bias=True), projections_with_bias(bias=True)] == [
        "",
        "qkv",
        "qkvo",
    ]


def test_qk_norm_acts_per_head_before_rotation():
    attention, x, recorded = make_attention(qk_norm=RMSNorm), torch.randn(2, 7, 12), {}
    for name in ("q", "k", "v", "q_rot", "k_rot"):
        tap = getattr(attention, name)
        tap.register_forward_hook(lambda tap, inputs, output, name=name: recorded.update({name: output}))
    attention(x, rotation_cos_and_sin(torch.arange(7)[None]))
    for name in ("q", "k"):
        heads = split_heads(getattr(attention, f"{name}_proj")(x), 3)
        gain = getattr(attention, f"{name}_norm").weight
        torch.testing.assert_close(recorded[name], F.rms_norm(heads, (4,), gain, eps=1e-5))
        torch.testing.assert_close(recorded[f"{name}_rot"].norm(dim=-1), recorded[name].norm(dim=-1))
    torch.testing.assert_close(recorded["v"], split_heads(attention.v_proj(x), 3))


@pytest.mark.parametrize(("norm", "plain"), [(RMSNormOverHeads, F.rms_norm), (LayerNormOverHeads, F.layer_norm)])
def test_qk_norm_over_all_heads_acts_on_whole_vector(norm, plain):
    attention, x, recorded = make_attention(qk_norm=norm, qk_norm_over="all", num_kv_heads=1), torch.randn(2, 7, 12), {}
    for name, heads, width in (("q", 3, 12), ("k", 1, 4)):
        attention.get_submodule(name).register_forward_hook(lambda tap, inputs, output: recorded.update({tap: output}))
        torch.nn.init.normal_(attention.get_submodule(f"{name}_norm").weight)
        attention(x, rotation_cos_and_sin(torch.arange(7)[None]))
        learnt, vectors = attention.get_submodule(f"{name}_norm"), attention.get_submodule(f"{name}_proj")(x)
        normalised = plain(vectors, (width,), eps=1e-5) * learnt.weight + getattr(learnt, "bias", 0)
        torch.testing.assert_close(recorded[attention.get_submodule(name)], split_heads(normalised, heads))


def test_qk_norm_makes_query_weight_scale_irrelevant():
    normalised, plain, x = make_attention(qk_norm=RMSNorm), make_attention(), torch.randn(2, 7, 12)
    for attention, tolerates in ((normalised, True), (plain, False)):
        before = attention(x)
        attention.q_proj.weight.data *= 5
        assert torch.allclose(attention(x), before, atol=1e-3) == tolerates


@pytest.mark.parametrize("layout", ["adjacent", "half_split"])
def test_batch_sequences_may_have_different_positions(layout):
    attention, x = make_attention(rope_layout=layout), torch.randn(2, 5, 12)
    positions = torch.tensor([[0, 1, 2, 3, 4], [9, 3, 3, 40, 0]])
    together = attention(x, rotation_cos_and_sin(positions))
    for b in range(2):
        single = attention(x[b : b + 1], rotation_cos_and_sin(positions[b : b + 1]))
        torch.testing.assert_close(together[b : b + 1], single, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(attention(x, rotation_cos_and_sin(positions + 5)), together, atol=1e-4, rtol=1e-4)
    assert (attention(x, rotation_cos_and_sin(positions[:1])) - together)[1].abs().max() > 0.01


@pytest.mark.parametrize("watched", [False, True], ids=["unwatched", "watched"])
def test_attention_dropout_acts_on_pattern(watched):
    """The values are unit vectors, so that z is the pattern."""
    attention = MultiHeadSelfAttention(64, 2, attention_dropout=0.25).eval()
    if watched:
        attention.scores.register_forward_hook(lambda tap, inputs, output: None)
    q, k = torch.randn(2, 20, 2, 32, 32)
    v = torch.eye(32).expand(20, 2, 32, 32)
    pattern = attention.attend(q, k, v)
    torch.testing.assert_close(pattern.sum(-1), torch.ones(20, 2, 32))
    dropped = attention.train().attend(q, k, v)
    retained = dropped != 0
    torch.testing.assert_close(dropped[retained], pattern[retained] / 0.75)
    assert retained[pattern > 0].float().mean().item() == pytest.approx(0.75, abs=0.01)
    assert dropped.sum(-1).mean().item() == pytest.approx(1, abs=0.02)


def test_hooked_pattern_precedes_dropout():
    attention, recorded = make_attention(attention_dropout=0.5).train(), []
    attention.pattern.register_forward_hook(lambda tap, inputs, output: recorded.append(output))
    attention(torch.randn(2, 7, 12))
    torch.testing.assert_close(recorded[0].sum(-1), torch.ones(2, 3, 7))
