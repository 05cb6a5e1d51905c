from collections import Counter
from dataclasses import replace

import pytest

from model.config import ModelConfig, flops_table, kv_cache_bytes_per_token, num_parameters, parameter_table
from model.layers.attention import KVCache
from model.transformer_lm import TransformerLM
from tests.subtest_loops import subtest_each

MODELS = [
    {},
    {"tie_embeddings": True},
    {"norm": "layernorm", "position": "sinusoidal", "ffn": "relu", "bias": True},
    {"norm": "layernorm", "position": "learned", "ffn": "gelu", "bias": True, "norm_placement": "post"},
    {"num_kv_heads": 1, "qkv_bias": True, "qk_norm": True, "head_dim": 10},
    {"norm_placement": "shared", "unembedding_bias": True, "tie_embeddings": True},
    {"bias": True, "unbiased_qkv": True, "windows": (None, 5)},
    {"norm": "layernorm", "qk_norm": True, "bias": True, "num_kv_heads": 1},
    {"norm_placement": "output", "qk_norm": True, "qk_norm_over": "all", "num_kv_heads": 1},
    {"norm": "layernorm", "qk_norm": True, "qk_norm_over": "all"},
    {"norm_placement": "sandwich", "ffn": "geglu", "bias": True},
    {"bias": True, "ffn_bias": False},
    {"ffn_bias": True, "qkv_bias": True},
]


def count_row(name: str) -> str:
    """Return the table row that counts a parameter."""
    if "norm" in name:
        return "query and key norms" if ".q_norm" in name or ".k_norm" in name else "norms"
    if "embedding" in name:
        return name.split(".")[0].replace("_", " ")
    if name.startswith("lm_head."):
        return "unembedding" if name.endswith("weight") else "unembedding bias"
    kind = "matrices" if name.endswith("weight") else "biases"
    return f"{'attention' if '.attn.' in name else 'feed-forward'} {kind}"


@subtest_each("choices", MODELS, ids=str)
def test_parameter_table_matches_model(tiny_config, choices):
    config = replace(tiny_config, **choices)
    counted = Counter()
    for name, parameter in TransformerLM(config).named_parameters():
        counted[count_row(name)] += parameter.numel()
    assert {row.component: row.count for row in parameter_table(config) if row.count} == counted
    assert num_parameters(config) == counted.total()


@subtest_each("choices", MODELS, ids=str)
def test_formulas_give_their_counts(tiny_config, choices):
    config = replace(tiny_config, **choices)
    letters = {"V": config.vocab_size, "C": config.context_length, "D": config.d_model, "L": config.num_layers}
    letters |= {"H": config.num_heads, "G": config.kv_heads, "d": config.d_head, "F": config.d_ff, "K": 7}
    for row in parameter_table(config) + flops_table(config, 7):
        if row.count:
            assert evaluate_formula(row.formula, letters) == row.count, row


def evaluate_formula(formula: str, letters: dict[str, int]) -> int:
    """Evaluate a formula such as `2 L (D² + D)`; a space or a dot between factors is a product."""
    tokens = formula.replace("²", " **2").replace("·", " ").replace("(", " ( ").replace(")", " ) ").split()
    expression, after_value = "", False
    for token in tokens:
        starts_value = token not in ("+", ")", "**2")
        expression += ("*" if after_value and starts_value else "") + token
        after_value = token not in ("+", "(")
    return eval(expression, {}, letters)


def test_course_model_has_about_70_million_parameters():
    config = ModelConfig.gpt_style(vocab_size=50_000, context_length=512, d_model=512, num_layers=6, num_heads=8)
    millions = {row.component: round(row.count / 1e6, 1) for row in parameter_table(config)}
    assert millions["token embedding"] == millions["unembedding"] == 25.6
    assert (millions["attention matrices"], millions["feed-forward matrices"]) == (6.3, 12.6)
    assert num_parameters(config) == pytest.approx(70e6, rel=0.01)


def test_llama_and_gpt_models_have_similar_size():
    sizes = {"vocab_size": 4096, "context_length": 256, "d_model": 192, "num_layers": 6, "num_heads": 6}
    twins = ModelConfig.llama_style(**sizes, tie_embeddings=True), ModelConfig.gpt_style(**sizes, tie_embeddings=True)
    llama, gpt = map(num_parameters, twins)
    assert gpt == pytest.approx(llama, rel=0.03)


def test_flops_count_matrices_and_attention(tiny_config):
    matrices = sum(p.numel() for name, p in TransformerLM(tiny_config).named_parameters() if p.ndim == 2)
    matrices -= tiny_config.vocab_size * tiny_config.d_model  # the embedding is looked up
    flops = sum(row.count for row in flops_table(tiny_config, num_positions=10))
    assert flops == 2 * matrices + 2 * tiny_config.num_layers * 2 * 10 * tiny_config.d_model


@pytest.mark.parametrize("num_positions", [3, 10])
def test_attention_flops_respect_window(tiny_config, num_positions):
    windowed, whole = replace(tiny_config, windows=(None, 5)), tiny_config
    counts = [flops_table(config, num_positions)[1].count for config in (windowed, whole)]
    width = tiny_config.num_heads * tiny_config.d_head
    assert counts[1] - counts[0] == 4 * width * max(0, num_positions - 5)


@subtest_each("choices", MODELS, ids=str)
def test_kv_cache_bytes_match_cache(tiny_config, choices):
    config = replace(tiny_config, **choices)
    cache = KVCache(config)
    assert kv_cache_bytes_per_token(config) == cache.entries.nbytes / config.context_length
    assert kv_cache_bytes_per_token(config, 2) == cache.entries.nbytes / config.context_length / 2
