"""The model's norms, on any vectors."""

import numpy as np

from explorer.analysis.edits import as_edited, put_in, puts_in
from explorer.architecture.stream import input_of, output_norm
from explorer.state.interventions import kind_of_norm
from explorer.tracing.trace import Trace


def norm_scale(trace: Trace, x: np.ndarray, name: str = "") -> np.ndarray:
    """What a norm divides vectors by, (..., D) -> (...): √(mean(x²) + ε), or of LayerNorm √(var(x) + ε).

    Args:
        name: of the norm, of which the run may have made another kind.
    """
    if kind(trace, name) == "none":
        return np.ones(x.shape[:-1])
    x = centred(trace, x.astype(np.float64), name)
    return np.sqrt((x**2).mean(-1) + trace.config.norm_eps)


def kind(trace: Trace, name: str) -> str:
    """Which kind of norm it is in the run: "rmsnorm", "layernorm" or "none"."""
    return kind_of_norm(trace.config, trace.edits, name)


def centred(trace: Trace, x: np.ndarray, name: str = "") -> np.ndarray:
    """x less its mean over the last axis where the norm is LayerNorm, x itself where it is another."""
    return x - x.mean(-1, keepdims=True) if kind(trace, name) == "layernorm" else x


def shift_of(trace: Trace, name: str) -> np.ndarray | float:
    """(D,) β of a norm, or 0."""
    return 0.0 if kind(trace, name) == "none" else trace.weights.get(f"{name}.bias", 0.0)


def apply_norm(
    trace: Trace,
    name: str,
    x: np.ndarray,
    scale: np.ndarray | None = None,
    positions: int | np.ndarray | None = None,
) -> np.ndarray:
    """The norm called `name` ("final_norm", "blocks.0.attn_norm") of any vectors, (..., D) -> (..., D) in float64.

    Args:
        x: (..., D).
        scale: (...), what to divide by in the place of x's own `norm_scale`. With it the norm is linear but for
            LayerNorm's β, so that the parts of a sum can be taken through it one by one.
        positions: of the vectors, or (T,) each one's of x (..., T, D); needed where edits hold at some only.

    A model with post-norm blocks has no `final_norm`, which then leaves x as it is. The run's edits of what the norm
    gives out are followed.
    """
    y = normalised(trace, name, x.astype(np.float64), scale)
    changed = as_edited(trace, name, y, positions)
    if not puts_in(trace, name):
        return changed
    before = normalised(trace, name, trace[input_of(trace.config, name)][positions].astype(np.float64))
    return changed + put_in(trace, name, before, positions)


def normalised(trace: Trace, name: str, x: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """The same, whatever edits make of it then."""
    if f"{name}.weight" not in trace.weights:
        return x
    scale = norm_scale(trace, x, name) if scale is None else scale
    return centred(trace, x, name) / scale[..., None] * trace.weights[f"{name}.weight"] + shift_of(trace, name)


def added_of(trace: Trace, layer: int, sublayer: str, x: np.ndarray, position: int) -> np.ndarray:
    """What of some parts (..., D) of a sublayer's output at a position is added to the stream: they themselves, or what
    the norm on the way makes of them, which divides by what it divided the whole output by; its β is no part's."""
    norm = output_norm(trace.config, layer, sublayer)
    if norm is None:
        return x
    scale = norm_scale(trace, trace[input_of(trace.config, norm)][position], norm)
    return centred(trace, x, norm) / scale * trace.weights[f"{norm}.weight"]
