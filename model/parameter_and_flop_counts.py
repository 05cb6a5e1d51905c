"""Parameters, floating-point operations and memory of a model, from its config alone.

Letters as in `model/transformer_lm.py`; G key-value heads.
"""

from dataclasses import dataclass

from model.config import ModelConfig


@dataclass(frozen=True)
class CountRow:
    """A component's share of a count: its name, the formula and the result."""

    component: str
    formula: str
    count: int


# whether queries, keys and values have biases, and whether the output has -> how those of attention are counted
ATTENTION_BIAS_FORMULAS = {
    (True, True): "L ((H + 2 G) d + D)",
    (True, False): "L (H + 2 G) d",
    (False, True): "L D",
    (False, False): "0",
}


NORMS_PER_BLOCK = {"pre": 2, "post": 2, "parallel": 2, "shared": 1, "output": 2, "sandwich": 4}


def parameter_table(config: ModelConfig) -> list[CountRow]:
    """Return the parameters by component; the counts sum to all parameters of `TransformerLM(config)`.

    Components that a model lacks have no row; a tied unembedding has one with 0.
    """
    c, d = config, config.d_head
    V, C, D, L, H, G, F = c.vocab_size, c.context_length, c.d_model, c.num_layers, c.num_heads, c.kv_heads, c.d_ff
    norm, norm_formula = (2 * D, "2 D") if c.norm == "layernorm" else (D, "D")
    num_norms = NORMS_PER_BLOCK[c.norm_placement] * L + (c.norm_placement != "post")
    qk_norms, times = (2 * L, "2 L") if c.qk_norm_over == "head" else (L * (H + G), "L (H + G)")
    matrices = 3 if c.is_gated else 2
    attention_biases = (H + 2 * G) * d * c.has_qkv_bias + D * c.bias
    rows = [
        CountRow("token embedding", "V D", V * D),
        CountRow("position embedding", "C D", C * D * (c.position == "learned")),
        CountRow("attention matrices", "2 L D d (H + G)", 2 * L * D * d * (H + G)),
        CountRow(
            "attention biases",
            ATTENTION_BIAS_FORMULAS[c.has_qkv_bias, c.bias],
            L * attention_biases,
        ),
        CountRow(
            "query and key norms", f"{times} {norm_formula.replace('D', 'd')}", c.qk_norm * qk_norms * norm * d // D
        ),
        CountRow("feed-forward matrices", f"{matrices} L D F", matrices * L * D * F),
        CountRow("feed-forward biases", f"L ({matrices - 1} F + D)", c.has_ffn_bias * L * ((matrices - 1) * F + D)),
        CountRow("norms", f"{num_norms} · {norm_formula}", num_norms * norm),
    ]
    rows = [row for row in rows if row.count]
    unembedding = CountRow("unembedding", "tied: 0", 0) if c.tie_embeddings else CountRow("unembedding", "V D", V * D)
    bias = [CountRow("unembedding bias", "V", V)] * c.unembedding_bias
    return [*rows, unembedding, *bias]


def num_parameters(config: ModelConfig) -> int:
    """Return the number of parameters, with tied weights counted once."""
    return sum(row.count for row in parameter_table(config))


def flops_table(config: ModelConfig, num_positions: int) -> list[CountRow]:
    """Return a token's forward-pass FLOPs by component, attending to `num_positions` = K positions.

    Only matrix products are counted, a multiplication and an addition each; they are all but a few per cent. A
    training step costs about three times as much (Kaplan et al. 2020, §2.1).
    """
    c = config
    V, D, L, H, G, F, K = c.vocab_size, c.d_model, c.num_layers, c.num_heads, c.kv_heads, c.d_ff, num_positions
    matrices = 3 if c.is_gated else 2
    return [
        CountRow("attention projections", "4 L D d (H + G)", 4 * L * D * c.d_head * (H + G)),
        CountRow("attention scores and weighted values", *score_and_value_flops(c, K)),
        CountRow("feed-forward", f"2 · {matrices} L D F", 2 * matrices * L * D * F),
        CountRow("unembedding", "2 V D", 2 * V * D),
    ]


def score_and_value_flops(config: ModelConfig, num_positions: int) -> tuple[str, int]:
    """Return the formula and the FLOPs of attention scores and weighted values, without the projections.

    If some layers attend to fewer than K positions, the formula has the total over layers as a number.
    """
    windows = [config.window(layer) or num_positions for layer in range(config.num_layers)]
    num_attended = sum(min(window, num_positions) for window in windows)
    formula = "4 L H d K" if num_attended == config.num_layers * num_positions else f"4 H d {num_attended}"
    return formula, 4 * config.num_heads * config.d_head * num_attended


def kv_cache_bytes_per_token(config: ModelConfig, bytes_per_number: int = 4) -> int:
    """Return the bytes of the key-value cache per position: 2 L G d numbers."""
    return 2 * config.num_layers * config.kv_heads * config.d_head * bytes_per_number
