"""Parity of the whole model with Hugging Face's implementations, with the same random weights."""

from dataclasses import replace

import pytest
import torch

from model.config import ModelConfig, RopeScaling
from model.transformer_lm import TransformerLM

SIZES = {"vocab_size": 101, "context_length": 48, "d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 56}
LLAMA = ModelConfig.llama_style(**SIZES, rope_theta=500.0, norm_eps=1e-3)
LLAMA2 = replace(LLAMA, rope_layout="half_split", num_kv_heads=2)
LINEAR = RopeScaling(kind="linear", factor=4.0)
# Of the four pairs, the first is fast, the second is between, and the others are slow.
LLAMA3 = RopeScaling(kind="llama3", factor=8.0, original_context_length=32)
GPT2 = ModelConfig.gpt_style(**SIZES, position="learned", ffn="gelu_tanh", tie_embeddings=True, norm_eps=1e-3)

# Name -> (function of `tests.hugging_face`, our config, a config change that the comparison must detect).
REFERENCES = {
    "Llama": ("as_llama", LLAMA, {"rope_layout": "half_split"}),
    "Llama, grouped, its own layout": ("as_llama", LLAMA2, {"rope_layout": "adjacent"}),
    "Llama with biases": ("as_llama", replace(LLAMA, bias=True, num_kv_heads=1), {"rope_theta": 400.0}),
    "Llama, slowed": ("as_llama", replace(LLAMA2, rope_scaling=LINEAR), {"rope_scaling": None}),
    "Llama 3.1": (
        "as_llama",
        replace(LLAMA2, rope_scaling=LLAMA3),
        {"rope_scaling": replace(LLAMA3, high_frequency_factor=4.5)},
    ),
    "Qwen2": ("as_qwen2", replace(LLAMA2, qkv_bias=True, tie_embeddings=True), {"norm_eps": 2e-3}),
    "Qwen3": ("as_qwen3", replace(LLAMA2, qk_norm=True), {"rope_layout": "adjacent"}),
    "Qwen3, wide heads": ("as_qwen3", replace(LLAMA2, qk_norm=True, head_dim=14), {"norm_eps": 2e-3}),
    "Qwen3, our layout": ("as_qwen3", replace(LLAMA, qk_norm=True), {"rope_layout": "half_split"}),
    "GPT-2": ("as_gpt2", GPT2, {"ffn": "gelu"}),
}


def random_lm(config: ModelConfig) -> TransformerLM:
    """Return a model with unequal gains and biases and patterns far from uniform, so that a wrong rotation shows."""
    torch.manual_seed(0)
    lm = TransformerLM(config).eval()
    for name, parameter in lm.named_parameters():
        if "norm" in name or name.endswith("bias"):
            parameter.data.uniform_(0.5, 2)
        else:
            parameter.data *= 2
    return lm


@pytest.fixture(scope="module", params=REFERENCES.values(), ids=REFERENCES.keys())
def pair(request):
    """Our model, the reference and a bug: a config change that the comparison must notice."""
    pytest.importorskip("transformers")
    from tests import hugging_face  # takes seconds: import only if these tests run

    other, config, bug = request.param
    ours = random_lm(config)
    return ours, getattr(hugging_face, other)(ours, attn_implementation="eager"), bug


@pytest.fixture
def ids():
    return torch.randint(SIZES["vocab_size"], (2, SIZES["context_length"]))


@torch.no_grad()
def test_logits_hidden_states_and_patterns_match_transformers(pair, ids, record):
    ours, reference, _ = pair
    hf_output = reference(ids, output_hidden_states=True, output_attentions=True)
    values = record(ours, ids, ours.taps)
    blocks = range(ours.config.num_layers)
    streams = [values["embed"], *(values[f"blocks.{i}.resid_post"] for i in blocks[:-1]), values["final_norm"]]
    for ours_stream, expected in zip(streams, hf_output.hidden_states, strict=True):
        torch.testing.assert_close(ours_stream, expected, atol=1e-4, rtol=1e-4)
    for i, expected in zip(blocks, hf_output.attentions, strict=True):
        torch.testing.assert_close(values[f"blocks.{i}.attn.pattern"], expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(values["logits"], hf_output.logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(ours(ids), hf_output.logits, atol=1e-4, rtol=1e-4)  # the fused path


@torch.no_grad()
def test_comparison_detects_wrong_setting(pair, ids):
    """With one wrong setting, logits differ by more than twice the tolerance."""
    ours, reference, bug = pair
    mistaken = TransformerLM(replace(ours.config, **bug)).eval()
    mistaken.load_state_dict(ours.state_dict())
    hf_logits = reference(ids).logits
    excess = (mistaken(ids) - hf_logits).abs() / (1e-4 + 1e-4 * hf_logits.abs())
    assert excess.max() > 2
