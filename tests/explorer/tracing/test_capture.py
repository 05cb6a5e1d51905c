"""Captures: every tap's value, logits of the plain forward pass, and no trace left in the model."""

import numpy as np
import pytest
import torch

from explorer.interventions import Edit, make_intervention
from explorer.tracing.capture import capture
from tests.subtest_loops import each_style

MODEL_VALUES = {"embed": "T D", "rope.angles": "T P", "final_norm": "T D", "logits": "T V"}
BLOCK_VALUES = {
    **dict.fromkeys(("resid_pre", "attn_norm", "attn.out", "resid_mid", "ffn_norm", "ffn.out", "resid_post"), "T D"),
    **dict.fromkeys(("attn.q", "attn.k", "attn.v", "attn.q_rot", "attn.k_rot", "attn.z"), "H T d"),
    **dict.fromkeys(("attn.scores", "attn.pattern"), "H T T"),
    **dict.fromkeys(("ffn.gate_pre", "ffn.gate", "ffn.up", "ffn.hidden"), "T F"),
}
LENGTH = 12


@pytest.fixture
def ids(tiny_tokenizer) -> list[int]:
    return tiny_tokenizer.encode("Once upon a time there was a fox who wanted the moon.")[:LENGTH]


def num_hooks(lm) -> int:
    return sum(len(module._forward_hooks) for module in lm.modules())


def test_llama_style_names_and_shapes(tiny_lm, tiny_config, ids):
    sizes = {
        "T": LENGTH,
        "D": tiny_config.d_model,
        "H": tiny_config.num_heads,
        "d": tiny_config.d_head,
        "P": tiny_config.d_head // 2,
        "F": tiny_config.d_ff,
        "V": tiny_config.vocab_size,
    }
    blocks = {f"blocks.{i}.{name}": axes for i in range(tiny_config.num_layers) for name, axes in BLOCK_VALUES.items()}
    expected = {name: tuple(sizes[a] for a in axes.split()) for name, axes in (MODEL_VALUES | blocks).items()}
    assert {name: value.shape for name, value in capture(tiny_lm, ids).values.items()} == expected


def test_model_without_rope_has_no_rotated_values(capture_trace):
    with_rope, without = set(capture_trace("rope").values), set(capture_trace("none").values)
    missing = {name for name in with_rope - without if ".ffn." not in name}
    assert {name.split(".")[-1] for name in missing} == {"angles", "q_rot", "k_rot"}
    assert without < with_rope


def test_values_are_in_order_of_computation(rope_trace):
    names = list(rope_trace.values)
    in_order = ["embed", "rope.angles", "blocks.0.resid_pre", "blocks.0.attn.q", "blocks.0.attn.q_rot"]
    in_order += ["blocks.0.attn.scores", "blocks.0.attn.pattern", "blocks.0.attn.z", "blocks.0.resid_mid"]
    in_order += ["blocks.0.ffn.hidden", "blocks.0.resid_post", "blocks.1.resid_pre", "final_norm", "logits"]
    assert sorted(in_order, key=names.index) == in_order


@each_style
def test_logits_equal_plain_forward_pass(lms, style, ids):
    with torch.inference_mode():
        plain = lms[style](torch.tensor([ids]))[0].numpy()
    np.testing.assert_allclose(capture(lms[style], ids)["logits"], plain, atol=1e-5)


def test_trace_has_config_and_tokens(tiny_lm, tiny_config, tiny_tokenizer, ids):
    trace = capture(tiny_lm, ids, tokenizer=tiny_tokenizer)
    assert (trace.config, trace.token_ids) == (tiny_config, tuple(ids))
    assert "".join(trace.tokens) == tiny_tokenizer.decode(ids)
    assert b"".join(trace.token_bytes[token_id] for token_id in ids).decode() == tiny_tokenizer.decode(ids)
    assert capture(tiny_lm, ids).tokens == tuple(map(str, ids))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_values_are_read_only_float32_for_every_dtype(tiny_lm, ids, dtype):
    for name, value in capture(tiny_lm.to(dtype), ids).values.items():
        assert value.dtype == np.float32, name
        with pytest.raises(ValueError, match="read-only"):
            value[:] = 0


def test_values_share_no_memory_with_model(tiny_lm, ids):
    inside = [tensor.detach().numpy() for tensor in (*tiny_lm.parameters(), *tiny_lm.buffers())]
    for name, value in capture(tiny_lm, ids).values.items():
        assert not any(np.shares_memory(value, tensor) for tensor in inside), name


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "1 to 32 tokens, got 0"),
        ([0] * 33, "1 to 32 tokens, got 33"),
        ([1, -1], "0 to 299, got -1 to 1"),
        ([1, 300], "0 to 299, got 1 to 300"),
    ],
)
def test_invalid_tokens_are_refused(tiny_lm, wrong, message):
    with pytest.raises(ValueError, match=message):
        capture(tiny_lm, wrong)
    assert num_hooks(tiny_lm) == 0


def test_only_capture_hooks_are_removed(tiny_lm, ids):
    tiny_lm.embed.register_forward_hook(lambda module, inputs, output: None)
    capture(tiny_lm, ids)
    assert num_hooks(tiny_lm) == 1


def test_hooks_are_removed_after_a_forward_error(tiny_lm, ids):
    def fail(module, inputs):
        raise RuntimeError("in the middle")

    handle = tiny_lm.blocks[1].ffn.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        capture(tiny_lm, ids)
    handle.remove()
    assert num_hooks(tiny_lm) == 0
    assert len(capture(tiny_lm, ids)) == LENGTH


def test_hooks_are_removed_after_a_registration_error(tiny_lm, ids, monkeypatch):
    class Full(dict):
        def __setitem__(self, key, value):
            raise MemoryError

    monkeypatch.setattr(tiny_lm.blocks[1].resid_mid, "_forward_hooks", Full())
    with pytest.raises(MemoryError):
        capture(tiny_lm, ids)
    assert num_hooks(tiny_lm) == 0


def test_capture_leaves_weights_unchanged(tiny_lm, ids):
    before = {name: tensor.clone() for name, tensor in tiny_lm.state_dict().items()}
    capture(tiny_lm, ids)
    assert all(torch.equal(tensor, before[name]) for name, tensor in tiny_lm.state_dict().items())


def test_traces_share_read_only_weights(tiny_lm):
    first, second = capture(tiny_lm, [1, 2, 3]), capture(tiny_lm, [4])
    assert all(first.weights[name] is weight for name, weight in second.weights.items())
    assert first.weights.keys() == tiny_lm.state_dict().keys()
    for name, weight in tiny_lm.state_dict().items():
        assert (first.weights[name] == weight.numpy()).all()
    with pytest.raises(ValueError, match="read-only"):
        first.weights["lm_head.weight"][0, 0] = 1
    with pytest.raises(TypeError):
        first.weights["lm_head.weight"] = np.zeros(1)


def test_former_intervention_names_still_work(tiny_lm, ids):
    ablation = Edit("blocks.0.attn.z", "zero", index=1)
    assert ablation == make_intervention("blocks.0.attn.z", "zero", index=1)
    by_name = [capture(tiny_lm, ids, **{name: [ablation]})["logits"] for name in ("interventions", "edits")]
    np.testing.assert_array_equal(*by_name)
    assert not np.array_equal(by_name[0], capture(tiny_lm, ids)["logits"])
