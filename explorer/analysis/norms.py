"""The model's norms, on any vectors."""

import numpy as np

from explorer.analysis.edits import as_edited
from explorer.tracing.trace import Trace


def norm_scale(trace: Trace, x: np.ndarray) -> np.ndarray:
    """What a norm divides vectors by, (..., D) -> (...): √(mean(x²) + ε), or of LayerNorm √(var(x) + ε)."""
    x = centred(trace, x.astype(np.float64))
    return np.sqrt((x**2).mean(-1) + trace.config.norm_eps)


def centred(trace: Trace, x: np.ndarray) -> np.ndarray:
    """x less its mean over the last axis where the model's norm is LayerNorm, x itself where it is RMSNorm."""
    return x - x.mean(-1, keepdims=True) if trace.config.norm == "layernorm" else x


def apply_norm(trace: Trace, name: str, x: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """The norm called `name` ("final_norm", "blocks.0.attn_norm") of any vectors, (..., D) -> (..., D) in float64.

    Args:
        x: (..., D).
        scale: (...), what to divide by in the place of x's own `norm_scale`. With it the norm is linear but for
            LayerNorm's β, so that the parts of a sum can be taken through it one by one.

    A model with post-norm blocks has no `final_norm`, which then leaves x as it is. The run's edits of what the norm
    gives out are followed.
    """
    x = x.astype(np.float64)
    if f"{name}.weight" not in trace.weights:
        return as_edited(trace, name, x)
    scale = norm_scale(trace, x) if scale is None else scale
    shift = trace.weights.get(f"{name}.bias", 0.0)
    return as_edited(trace, name, centred(trace, x) / scale[..., None] * trace.weights[f"{name}.weight"] + shift)


def unembed(trace: Trace, x: np.ndarray) -> np.ndarray:
    """Logits of normalised vectors, with the run's edits of logits: (..., D) -> (..., V) in float32."""
    return as_edited(trace, "logits", x.astype(np.float32) @ trace.weights["lm_head.weight"].T)


def unembedding(trace: Trace, token_id: int) -> np.ndarray:
    """(D,) in float64, whose product with a normalised vector is a token's logit, with the run's edits of logits."""
    factors = as_edited(trace, "logits", np.ones(trace.config.vocab_size))
    return factors[token_id] * trace.weights["lm_head.weight"][token_id]
