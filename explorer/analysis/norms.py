"""The model's norms, on any vectors."""

import numpy as np

from explorer.analysis.interventions import as_edited, put_in, puts_in
from explorer.analysis.interventions.effect import holds_at
from explorer.architecture.stream import input_of, output_norm
from explorer.state.interventions import norms_in_place
from explorer.tracing.trace import Trace


def norm_scale(trace: Trace, x: np.ndarray, name: str, positions: int | np.ndarray | None = None) -> np.ndarray:
    """What a norm divides vectors by, (..., D) -> (...): √(mean(x²) + ε), or of LayerNorm √(var(x) + ε).

    Args:
        name: of the norm, of which the run may have made another kind.
        positions: of the vectors, or (T,) each one's of x (..., T, D); needed where it did so at some only.
    """
    of = kinds(trace, name, positions)
    x = centred(x.astype(np.float64), of)
    return np.where(of == "none", 1.0, np.sqrt((x**2).mean(-1) + trace.config.norm_eps))


def kinds(trace: Trace, name: str, positions: int | np.ndarray | None = None) -> np.ndarray:
    """Which kind of norm it is in the run, "rmsnorm", "layernorm" or "none": () at a position, (T,) at each of several.

    Args:
        positions: needed where the run made another kind of it at some only.
    """
    found = np.full(np.shape(positions), trace.config.norm, dtype="<U9")
    for edit in norms_in_place(trace.edits, name):
        found = np.where(holds_at(edit, positions), edit.by, found)
    return found


def centred(x: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """x (..., D) less its mean over the last axis where the norm is LayerNorm, x itself where it is another."""
    where = (kinds == "layernorm")[..., None]
    return np.where(where, x - x.mean(-1, keepdims=True), x) if where.any() else x


def shift_of(trace: Trace, name: str, positions: int | np.ndarray | None = None) -> np.ndarray | float:
    """(D,) β of a norm at a position, (T, D) at each of several, or 0 where it has none."""
    beta = trace.weights.get(f"{name}.bias")
    return 0.0 if beta is None else np.where((kinds(trace, name, positions) == "none")[..., None], 0.0, beta)


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
    y = normalised(trace, name, x.astype(np.float64), positions, scale)
    changed = as_edited(trace, name, y, positions)
    if not puts_in(trace, name):
        return changed
    before = normalised(trace, name, trace[input_of(trace.config, name)][positions].astype(np.float64), positions)
    return changed + put_in(trace, name, before, positions)


def normalised(
    trace: Trace,
    name: str,
    x: np.ndarray,
    positions: int | np.ndarray | None = None,
    scale: np.ndarray | None = None,
) -> np.ndarray:
    """The same, whatever edits make of it then."""
    if f"{name}.weight" not in trace.weights:
        return x
    scale = norm_scale(trace, x, name, positions) if scale is None else scale
    centre = centred(x, kinds(trace, name, positions))
    return centre / scale[..., None] * trace.weights[f"{name}.weight"] + shift_of(trace, name, positions)


def added_of(trace: Trace, layer: int, sublayer: str, x: np.ndarray, position: int) -> np.ndarray:
    """What of some parts (..., D) of a sublayer's output at a position is added to the stream: they themselves, or what
    the norm on the way makes of them, which divides by what it divided the whole output by; its β is no part's."""
    norm = output_norm(trace.config, layer, sublayer)
    if norm is None:
        return x
    scale = norm_scale(trace, trace[input_of(trace.config, norm)][position], norm, position)
    return centred(x, kinds(trace, norm, position)) / scale * trace.weights[f"{norm}.weight"]
