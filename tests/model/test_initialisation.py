import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from model.config import ModelConfig
from model.transformer_lm import INITIALISATIONS, TransformerLM, initialise
from tests.subtest_loops import subtest_each

SIZES = {"vocab_size": 1000, "context_length": 64, "d_model": 64, "num_layers": 2, "num_heads": 4}


@subtest_each("tie_embeddings", [False, True], ids=["untied", "tied"])
@subtest_each("style", ["llama_style", "gpt_style"])
@subtest_each("name", INITIALISATIONS)
@torch.no_grad()
def test_initial_loss_is_near_uniform_guessing(name, style, tie_embeddings):
    lm = TransformerLM(getattr(ModelConfig, style)(**SIZES, tie_embeddings=tie_embeddings)).eval()
    ids = torch.randint(1000, (8, 65))
    loss = F.cross_entropy(initialise(lm, name)(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(1000), abs=0.2)


@pytest.mark.parametrize(
    ("name", "std", "largest"),
    [
        ("truncated_normal", 0.98658 * math.sqrt(2 / (200 + 300)), 3 * math.sqrt(2 / (200 + 300))),
        ("xavier", math.sqrt(2 / (200 + 300)), math.sqrt(6 / (200 + 300))),
        ("kaiming", math.sqrt(2 / 200), math.inf),
        ("gpt2", 0.02, math.inf),
    ],
)
def test_block_matrices_follow_rule(tiny_config, name, std, largest):
    lm = initialise(TransformerLM(replace(tiny_config, d_model=200, num_heads=2, d_ff=300)), name)
    weight = lm.blocks[0].ffn.up_proj.weight  # (300, 200)
    assert weight.std().item() == pytest.approx(std, rel=0.02)
    assert abs(weight.mean().item()) < 0.02 * std
    assert weight.abs().max() <= largest * 1.001


def test_gpt2_scales_output_projections_with_depth(tiny_config):
    lm = initialise(TransformerLM(replace(tiny_config, d_model=200, num_heads=2, num_layers=8)), "gpt2")
    for layer in (lm.blocks[3].attn.o_proj, lm.blocks[3].ffn.down_proj):
        assert layer.weight.std().item() == pytest.approx(0.02 / 4, rel=0.03)
    assert lm.token_embedding.weight.std().item() == pytest.approx(0.02, rel=0.03)


def test_default_rule_is_truncated_normal(tiny_config):
    fresh, reinitialised = TransformerLM(tiny_config), initialise(TransformerLM(tiny_config), "truncated_normal")
    for (name, one), other in zip(fresh.named_parameters(), reinitialised.parameters(), strict=True):
        if one.ndim == 2:
            assert one.std().item() == pytest.approx(other.std().item(), rel=0.1), name


def test_biases_start_at_0_and_gains_at_1():
    lm = TransformerLM(ModelConfig.gpt_style(**SIZES))
    for parameter in lm.parameters():
        if parameter.ndim == 1:
            parameter.data.fill_(1.0)
    initialise(lm, "xavier")
    assert (lm.blocks[0].ffn.up_proj.bias == 0).all() and (lm.blocks[0].attn.o_proj.bias == 0).all()
    assert (lm.blocks[0].attn_norm.weight == 1).all()


def test_unknown_rule_is_refused(tiny_lm):
    with pytest.raises(ValueError, match="one of truncated_normal, xavier, kaiming, gpt2, got 'lucky'"):
        initialise(tiny_lm, "lucky")
