"""The whole model against an independent implementation: Hugging Face's `LlamaForCausalLM`, same random weights."""

import pytest
import torch

from model.config import ModelConfig
from model.transformer_lm import TransformerLM

pytest.importorskip("transformers")
from tests.hugging_face import as_llama, llama_weights  # noqa: E402

CONFIG = ModelConfig.llama_style(
    vocab_size=101, context_length=48, d_model=32, num_layers=3, num_heads=4, d_ff=56, rope_theta=500.0, norm_eps=1e-3
)


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
    return as_llama(ours, attn_implementation="eager")


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
    weights = llama_weights(ours)
    query = "model.layers.0.self_attn.q_proj.weight"
    llama.load_state_dict(weights | {query: ours.blocks[0].attn.q_proj.weight})
    unordered = llama(ids).logits
    llama.load_state_dict(weights)
    assert (unordered - theirs).abs().max() > 0.05
