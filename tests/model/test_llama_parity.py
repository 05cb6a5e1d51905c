"""The whole model against an independent implementation: Hugging Face's `LlamaForCausalLM`, same random weights.

One convention differs. We rotate adjacent dimensions (0, 1), (2, 3), … together, as the RoPE paper does; Hugging Face
rotates (0, d/2), (1, d/2 + 1), …. The dot product of query and key does not care in which order dimensions are
listed, so the models agree once each head's rows of q_proj and k_proj are listed in Hugging Face's order: first the
even rows, then the odd ones.
"""

import os

import pytest
import torch

from model.config import ModelConfig
from model.transformer_lm import TransformerLM

os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers = pytest.importorskip("transformers")

CONFIG = ModelConfig.llama_style(
    vocab_size=101, context_length=48, d_model=32, num_layers=3, num_heads=4, d_ff=56, rope_theta=500.0, norm_eps=1e-3
)
NAMES = {
    "token_embedding": "model.embed_tokens",
    "attn_norm": "input_layernorm",
    "attn": "self_attn",
    "ffn_norm": "post_attention_layernorm",
    "ffn": "mlp",
    "blocks": "model.layers",
    "final_norm": "model.norm",
}


def half_split(weight: torch.Tensor) -> torch.Tensor:
    """(H d, D) rows of q_proj or k_proj: in each head the even rows, then the odd ones."""
    heads = weight.unflatten(0, (CONFIG.num_heads, CONFIG.d_head // 2, 2))  # (H, d/2, 2, D)
    return heads.transpose(1, 2).flatten(0, 2)


def hugging_face_weights(lm: TransformerLM) -> dict[str, torch.Tensor]:
    weights = {}
    for name, weight in lm.state_dict().items():
        name_there = ".".join(NAMES.get(part, part) for part in name.split("."))
        weights[name_there] = half_split(weight) if "q_proj" in name or "k_proj" in name else weight
    return weights


@pytest.fixture(scope="module")
def ours() -> TransformerLM:
    torch.manual_seed(0)
    lm = TransformerLM(CONFIG).eval()
    for name, parameter in lm.named_parameters():
        if "norm" in name:
            parameter.data.uniform_(0.5, 2)
        else:
            parameter.data *= 2  # patterns far from uniform, so that a wrong rotation shows
    return lm


@pytest.fixture(scope="module")
def llama(ours):
    config = transformers.LlamaConfig(
        vocab_size=CONFIG.vocab_size,
        hidden_size=CONFIG.d_model,
        intermediate_size=CONFIG.d_ff,
        num_hidden_layers=CONFIG.num_layers,
        num_attention_heads=CONFIG.num_heads,
        max_position_embeddings=CONFIG.context_length,
        rms_norm_eps=CONFIG.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": CONFIG.rope_theta},
        tie_word_embeddings=False,
        attn_implementation="eager",
    )
    llama = transformers.LlamaForCausalLM(config).eval()
    llama.load_state_dict(hugging_face_weights(ours))
    return llama


@torch.no_grad()
def test_logits_hidden_states_and_patterns_agree(ours, llama, record):
    ids = torch.randint(CONFIG.vocab_size, (2, CONFIG.context_length))
    theirs = llama(ids, output_hidden_states=True, output_attentions=True)
    values = record(ours, ids, ours.taps)
    blocks = range(CONFIG.num_layers)
    streams = [values["embed"], *(values[f"blocks.{i}.resid_post"] for i in blocks[:-1]), values["final_norm"]]
    for mine, their in zip(streams, theirs.hidden_states, strict=True):
        torch.testing.assert_close(mine, their, atol=1e-4, rtol=1e-4)
    for i, their in zip(blocks, theirs.attentions, strict=True):
        torch.testing.assert_close(values[f"blocks.{i}.attn.pattern"], their, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(values["logits"], theirs.logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(ours(ids), theirs.logits, atol=1e-4, rtol=1e-4)  # the fused path


@torch.no_grad()
def test_the_comparison_can_fail(ours, llama):
    """Without the reordering of rows, logits differ by far more than the tolerance."""
    ids = torch.randint(CONFIG.vocab_size, (1, CONFIG.context_length))
    theirs = llama(ids).logits
    weights = hugging_face_weights(ours)
    query = "model.layers.0.self_attn.q_proj.weight"
    llama.load_state_dict(weights | {query: ours.blocks[0].attn.q_proj.weight})
    unordered = llama(ids).logits
    llama.load_state_dict(weights)
    assert (unordered - theirs).abs().max() > 0.05
