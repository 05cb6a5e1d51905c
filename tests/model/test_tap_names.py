"""Names and shapes of all taps, which saved files and URLs rely on."""

import torch

from model.transformer_lm import TransformerLM
from tests.subtest_loops import subtest_each

LLAMA = {"embed": "T D", "rope.angles": "T P", "final_norm": "T D", "logits": "T V"}
LLAMA_BLOCK = {
    "resid_pre": "T D",
    "attn_norm": "T D",
    "attn.q": "H T d",
    "attn.k": "H T d",
    "attn.v": "H T d",
    "attn.q_rot": "H T d",
    "attn.k_rot": "H T d",
    "attn.scores": "H T T",
    "attn.pattern": "H T T",
    "attn.z": "H T d",
    "attn.out": "T D",
    "resid_mid": "T D",
    "ffn_norm": "T D",
    "ffn.gate_pre": "T F",
    "ffn.gate": "T F",
    "ffn.up": "T F",
    "ffn.hidden": "T F",
    "ffn.out": "T D",
    "resid_post": "T D",
}
GPT = {"embed": "T D", "position_embed": "T D", "final_norm": "T D", "logits": "T V"}
GPT_BLOCK = {
    "resid_pre": "T D",
    "attn_norm": "T D",
    "attn.q": "H T d",
    "attn.k": "H T d",
    "attn.v": "H T d",
    "attn.scores": "H T T",
    "attn.pattern": "H T T",
    "attn.z": "H T d",
    "attn.out": "T D",
    "resid_mid": "T D",
    "ffn_norm": "T D",
    "ffn.up": "T F",
    "ffn.hidden": "T F",
    "ffn.out": "T D",
    "resid_post": "T D",
}
GPT_STYLE = {"norm": "layernorm", "position": "sinusoidal", "ffn": "relu", "bias": True}
SHARED = {"attn.k": "G T d", "attn.v": "G T d"}
NORMALISED = {"attn.q_norm": "H T d", "attn.k_norm": "H T d"}

MODELS = {
    "llama": ({}, LLAMA, LLAMA_BLOCK),
    "llama, grouped": ({"num_kv_heads": 1}, LLAMA, LLAMA_BLOCK | SHARED | {"attn.k_rot": "G T d"}),
    "llama, normalised": ({"qk_norm": True}, LLAMA, LLAMA_BLOCK | NORMALISED),
    "llama, normalised over all heads": (
        {"qk_norm": True, "qk_norm_over": "all", "num_kv_heads": 1},
        LLAMA,
        LLAMA_BLOCK | SHARED | NORMALISED | {"attn.k_norm": "G T d", "attn.k_rot": "G T d"},
    ),
    "llama, outputs normalised": ({"norm_placement": "output"}, LLAMA, LLAMA_BLOCK),
    "llama, inputs and outputs normalised": (
        {"norm_placement": "sandwich", "ffn": "geglu"},
        LLAMA,
        LLAMA_BLOCK | {"attn_out_norm": "T D", "ffn_out_norm": "T D"},
    ),
    "gpt": (GPT_STYLE, GPT, GPT_BLOCK),
    "gpt, grouped": (GPT_STYLE | {"num_kv_heads": 1}, GPT, GPT_BLOCK | SHARED),
    "gpt, learned": (GPT_STYLE | {"position": "learned"}, GPT, GPT_BLOCK),
    "gpt, post-norm": (GPT_STYLE | {"norm_placement": "post"}, GPT, GPT_BLOCK),
}


each_model = subtest_each("name", MODELS)


def make_lm_and_axes(make_lm, name: str) -> tuple[TransformerLM, dict]:
    """Return a model, and the axes of every tap."""
    changes, values, block_values = MODELS[name]
    lm = make_lm(**changes)
    blocks = {f"blocks.{i}.{name}": axes for i in range(lm.config.num_layers) for name, axes in block_values.items()}
    return lm, values | blocks


@each_model
def test_tap_names_are_exactly_listed(make_lm, name):
    lm, expected = make_lm_and_axes(make_lm, name)
    assert sorted(lm.taps) == sorted(expected)
    assert all(lm.get_submodule(name) is module for name, module in lm.taps.items())


@each_model
def test_every_tap_has_listed_shape(make_lm, name, token_ids, record):
    lm, expected = make_lm_and_axes(make_lm, name)
    c = lm.config
    sizes = {"T": token_ids.shape[1], "D": c.d_model, "H": c.num_heads, "G": c.kv_heads, "d": c.d_head}
    sizes |= {"P": c.d_head // 2, "F": c.d_ff, "V": c.vocab_size}  # P pairs of dimensions
    values = record(lm, token_ids, expected)
    once = ("rope.angles", "position_embed")  # shared by all sequences
    batch = {name: 1 if name in once else 2 for name in expected}
    shapes = {name: tuple(value.shape) for name, value in values.items()}
    assert shapes == {name: (batch[name], *(sizes[a] for a in axes.split())) for name, axes in expected.items()}


@each_model
@torch.no_grad()
def test_every_tap_affects_logits(make_lm, name, token_ids, hook_modules):
    """Replacing any value by zeros changes the logits: every tap is part of the computation."""
    lm, expected = make_lm_and_axes(make_lm, name)
    intact = lm(token_ids)
    for name in expected:
        with hook_modules(lm, {name: lambda module, inputs, output: torch.zeros_like(output)}):
            assert not torch.allclose(lm(token_ids), intact, atol=1e-5), name


@subtest_each("position", ["rope", "sinusoidal", "learned", "none"])
@subtest_each("norm_placement", ["pre", "post"])
def test_every_tap_is_computed(make_lm, token_ids, record, position, norm_placement):
    lm = make_lm(position=position, norm_placement=norm_placement)
    assert record(lm, token_ids, lm.taps).keys() == lm.taps.keys()
