"""Dataflow of each kind of block, independent of the tested code."""

import numpy as np

from explorer.tracing.trace import Trace
from model.config import ModelConfig

# norm placement -> for each residual sum of a block: (sum, stream before, added taps, tap that is passed on)
SUMS = {
    "pre": [
        ("resid_mid", "resid_pre", ["attn.out"], "resid_mid"),
        ("resid_post", "resid_mid", ["ffn.out"], "resid_post"),
    ],
    "post": [
        ("resid_mid", "resid_pre", ["attn.out"], "attn_norm"),
        ("resid_post", "attn_norm", ["ffn.out"], "ffn_norm"),
    ],
    "output": [
        ("resid_mid", "resid_pre", ["attn_norm"], "resid_mid"),
        ("resid_post", "resid_mid", ["ffn_norm"], "resid_post"),
    ],
    "sandwich": [
        ("resid_mid", "resid_pre", ["attn_out_norm"], "resid_mid"),
        ("resid_post", "resid_mid", ["ffn_out_norm"], "resid_post"),
    ],
    "parallel": [("resid_post", "resid_pre", ["attn.out", "ffn.out"], "resid_post")],
    "shared": [("resid_post", "resid_pre", ["attn.out", "ffn.out"], "resid_post")],
}
# norm placement -> each norm and its input
NORMS = {
    "pre": {"attn_norm": "resid_pre", "ffn_norm": "resid_mid"},
    "post": {"attn_norm": "resid_mid", "ffn_norm": "resid_post"},
    "parallel": {"attn_norm": "resid_pre", "ffn_norm": "resid_pre"},
    "shared": {"attn_norm": "resid_pre"},
    "output": {"attn_norm": "attn.out", "ffn_norm": "ffn.out"},
    "sandwich": {
        "attn_norm": "resid_pre",
        "attn_out_norm": "attn.out",
        "ffn_norm": "resid_mid",
        "ffn_out_norm": "ffn.out",
    },
}
# norm placement -> inputs of attention and feed-forward
READS = {
    "pre": ("attn_norm", "ffn_norm"),
    "post": ("resid_pre", "attn_norm"),
    "parallel": ("attn_norm", "ffn_norm"),
    "shared": ("attn_norm", "attn_norm"),
    "output": ("resid_pre", "resid_mid"),
    "sandwich": ("attn_norm", "ffn_norm"),
}
# norm placement -> norms of the sublayers' outputs, if any
OUTPUT_NORMS = {"output": ("attn_norm", "ffn_norm"), "sandwich": ("attn_out_norm", "ffn_out_norm")}
STAGES = dict.fromkeys(("attn.out", "attn_norm", "attn_out_norm"), "attention")
STAGES |= dict.fromkeys(("ffn.out", "ffn_norm", "ffn_out_norm"), "feed-forward")


def residual_sums(config: ModelConfig) -> list[tuple[str, str, list[str], str]]:
    """Return all residual sums of a model: (sum, stream before, added taps, tap that is passed on)."""
    return [
        (f"{block}.{name}", f"{block}.{before}", [f"{block}.{out}" for out in added], f"{block}.{after}")
        for block in blocks(config)
        for name, before, added, after in SUMS[config.norm_placement]
    ]


def block_norms(config: ModelConfig) -> dict[str, str]:
    """Return the input tap of each norm except the final one, by the norm's tap."""
    block_norm_inputs = NORMS[config.norm_placement].items()
    return {f"{block}.{norm}": f"{block}.{read}" for block in blocks(config) for norm, read in block_norm_inputs}


def output_norm(config: ModelConfig, sublayer: str) -> str | None:
    """Return the norm that the output of "attn" or "ffn" passes before it is added; None without one."""
    return dict(zip(("attn", "ffn"), OUTPUT_NORMS.get(config.norm_placement, (None, None)), strict=True))[sublayer]


def residual_contributions(trace: Trace, layer: int, sublayer: str, vectors: np.ndarray, position: int) -> np.ndarray:
    """Return the stream updates (N, D) by vectors of a sublayer's output, with its norm's divisor in the run."""
    norm, block = output_norm(trace.config, sublayer), f"blocks.{layer}"
    if norm is None:
        return vectors
    x = trace[f"{block}.{sublayer}.out"][position].astype(float)
    if trace.config.norm == "layernorm":
        x, vectors = x - x.mean(), vectors - vectors.mean(-1, keepdims=True)
    return vectors / np.sqrt((x * x).mean() + trace.config.norm_eps) * trace.weights[f"{block}.{norm}.weight"]


def softcap(x, cap: float | None):
    """Softcap c · tanh(x / c)."""
    return x if cap is None else cap * np.tanh(x / cap)


def softcap_factors(trace: Trace, position: int) -> np.ndarray:
    """Return the factors (V,) by which the softcap multiplies the logits at a position."""
    plain = trace["final_norm"][position].astype(float) @ trace.weights["lm_head.weight"].astype(float).T
    if trace.config.unembedding_bias:
        plain = plain + trace.weights["lm_head.bias"]
    return softcap(plain, trace.config.logit_cap) / plain


def stage_names(config: ModelConfig) -> list[str]:
    """Return the names of the residual stream's stages, without norms."""
    block_stages = [
        " + ".join(STAGES[out] for out in added) for _name, _before, added, _after in SUMS[config.norm_placement]
    ]
    return ["embedding", *(f"{layer} {name}" for layer in range(config.num_layers) for name in block_stages)]


def blocks(config: ModelConfig) -> list[str]:
    return [f"blocks.{layer}" for layer in range(config.num_layers)]
