"""The names and shapes of all values that can be looked at in a llama-style model: a contract."""

import pytest
import torch

MODEL_VALUES = {"embed": "T D", "rope.angles": "T P", "final_norm": "T D", "logits": "T V"}
BLOCK_VALUES = {
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


@pytest.fixture
def expected(tiny_config) -> dict[str, str]:
    blocks = {f"blocks.{i}.{name}": axes for i in range(tiny_config.num_layers) for name, axes in BLOCK_VALUES.items()}
    return MODEL_VALUES | blocks


def test_the_taps_are_exactly_these(tiny_lm, expected):
    assert sorted(tiny_lm.taps) == sorted(expected)
    assert all(tiny_lm.get_submodule(name) is module for name, module in tiny_lm.taps.items())


def test_every_value_has_its_shape(tiny_lm, tiny_config, token_ids, record, expected):
    sizes = {
        "T": token_ids.shape[1],
        "D": tiny_config.d_model,
        "H": tiny_config.num_heads,
        "d": tiny_config.d_head,
        "P": tiny_config.d_head // 2,  # pairs of dimensions
        "F": tiny_config.d_ff,
        "V": tiny_config.vocab_size,
    }
    values = record(tiny_lm, token_ids, expected)
    batch = {name: 1 if name == "rope.angles" else 2 for name in expected}  # angles are the same for every sequence
    shapes = {name: tuple(value.shape) for name, value in values.items()}
    assert shapes == {name: (batch[name], *(sizes[a] for a in axes.split())) for name, axes in expected.items()}


def test_the_value_of_a_tap_is_what_the_next_step_reads(tiny_lm, token_ids, hooked, expected):
    """Replacing any value by zeros changes the logits: no tap sits beside the computation."""
    intact = tiny_lm(token_ids)
    for name in expected:
        with hooked(tiny_lm, {name: lambda module, inputs, output: torch.zeros_like(output)}):
            assert not torch.allclose(tiny_lm(token_ids), intact, atol=1e-5), name
