"""How large and how costly a model is, from its config alone.

Letters as in `model/transformer_lm.py`; G key-value heads.
"""

from dataclasses import dataclass

from model.config import ModelConfig


@dataclass(frozen=True)
class Row:
    """One component's share: what it is, how it is counted and how much that is."""

    component: str
    formula: str
    count: int


# whether queries, keys and values have biases, and whether the output has -> how those of attention are counted
BIASES = {
    (True, True): "L ((H + 2 G) d + D)",
    (True, False): "L (H + 2 G) d",
    (False, True): "L D",
    (False, False): "0",
}


NORMS_A_BLOCK = {"pre": 2, "post": 2, "parallel": 2, "shared": 1, "output": 2, "sandwich": 4}


def parameter_table(config: ModelConfig) -> list[Row]:
    """Parameters by component; the counts add up to all parameters of `TransformerLM(config)`.

    Components that a model lacks have no row; a tied unembedding has one with 0.
    """
    c, d = config, config.d_head
    V, C, D, L, H, G, F = c.vocab_size, c.context_length, c.d_model, c.num_layers, c.num_heads, c.kv_heads, c.d_ff
    norm, norm_formula = (2 * D, "2 D") if c.norm == "layernorm" else (D, "D")
    num_norms = NORMS_A_BLOCK[c.norm_placement] * L + (c.norm_placement != "post")
    qk_norms, times = (2 * L, "2 L") if c.qk_norm_over == "head" else (L * (H + G), "L (H + G)")
    matrices = 3 if c.is_gated else 2
    attention_biases = (H + 2 * G) * d * c.has_qkv_bias + D * c.bias
    rows = [
        Row("token embedding", "V D", V * D),
        Row("position embedding", "C D", C * D * (c.position == "learned")),
        Row("attention matrices", "2 L D d (H + G)", 2 * L * D * d * (H + G)),
        Row(
            "attention biases",
            BIASES[c.has_qkv_bias, c.bias],
            L * attention_biases,
        ),
        Row("query and key norms", f"{times} {norm_formula.replace('D', 'd')}", c.qk_norm * qk_norms * norm * d // D),
        Row("feed-forward matrices", f"{matrices} L D F", matrices * L * D * F),
        Row("feed-forward biases", f"L ({matrices - 1} F + D)", c.bias * L * ((matrices - 1) * F + D)),
        Row("norms", f"{num_norms} · {norm_formula}", num_norms * norm),
    ]
    rows = [row for row in rows if row.count]
    unembedding = Row("unembedding", "tied: 0", 0) if c.tie_embeddings else Row("unembedding", "V D", V * D)
    bias = [Row("unembedding bias", "V", V)] * c.unembedding_bias
    return [*rows, unembedding, *bias]


def num_parameters(config: ModelConfig) -> int:
    return sum(row.count for row in parameter_table(config))


def flops_table(config: ModelConfig, num_positions: int) -> list[Row]:
    """Floating-point operations of a token's forward pass, attending to `num_positions` = K positions, by component.

    Only products of matrices are counted, a multiplication and an addition each; they are all but a few per cent. A
    training step costs about three times as much (Kaplan et al. 2020, §2.1).
    """
    c = config
    V, D, L, H, G, F, K = c.vocab_size, c.d_model, c.num_layers, c.num_heads, c.kv_heads, c.d_ff, num_positions
    matrices = 3 if c.is_gated else 2
    return [
        Row("attention projections", "4 L D d (H + G)", 4 * L * D * c.d_head * (H + G)),
        Row("attention scores and weighted values", *scores_and_values(c, K)),
        Row("feed-forward", f"2 · {matrices} L D F", 2 * matrices * L * D * F),
        Row("unembedding", "2 V D", 2 * V * D),
    ]


def scores_and_values(config: ModelConfig, num_positions: int) -> tuple[str, int]:
    """The formula and its result: where some layers see fewer of the K positions, what all see together is written."""
    windows = [config.window(layer) or num_positions for layer in range(config.num_layers)]
    seen = sum(min(window, num_positions) for window in windows)
    formula = "4 L H d K" if seen == config.num_layers * num_positions else f"4 H d {seen}"
    return formula, 4 * config.num_heads * config.d_head * seen


def kv_cache_bytes_per_token(config: ModelConfig, bytes_per_number: int = 4) -> int:
    """2 L G d numbers: what generation keeps of every position, so as not to compute it again."""
    return 2 * config.num_layers * config.kv_heads * config.d_head * bytes_per_number
