"""Recomputation of a run's norms, on any vectors."""

import math

import numpy as np

from explorer.architecture.residual_stream import norm_input_tap, output_norm
from explorer.explain.captured.formulas import mean_square_or_variance, norm_kinds
from explorer.explain.captured.interventions import added_constant, adds_constant, apply_intervention_linear_part
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Calculation, Derivation, read_input
from explorer.explain.notation import format_six_digits, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import _


def compute_norm_divisor(
    trace: Trace, x: np.ndarray, name: str, positions: int | np.ndarray | None = None
) -> np.ndarray:
    """Return the divisor of a norm, (..., D) -> (...): √(mean(x²) + ε), or √(var(x) + ε) for LayerNorm.

    Args:
        name: of the norm; interventions may replace its kind.
        positions: position of the vectors, or (T,) positions for x (..., T, D); required if interventions replace
            the norm at some positions only.
    """
    kind = norm_kinds(trace, name, positions)
    x = subtract_layernorm_mean(x.astype(np.float64), kind)
    return np.where(kind == "none", 1.0, np.sqrt((x**2).mean(-1) + trace.config.norm_eps))


def subtract_layernorm_mean(x: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Return x (..., D) minus its mean over the last axis for LayerNorm, and x itself for other norms."""
    is_layernorm = (kinds == "layernorm")[..., None]
    return np.where(is_layernorm, x - x.mean(-1, keepdims=True), x) if is_layernorm.any() else x


def norm_bias(trace: Trace, name: str, positions: int | np.ndarray | None = None) -> np.ndarray | float:
    """Return β of a norm at a position (D,), or at several (T, D); 0 if it has none."""
    beta = trace.weights.get(f"{name}.bias")
    return 0.0 if beta is None else np.where((norm_kinds(trace, name, positions) == "none")[..., None], 0.0, beta)


def apply_norm(
    trace: Trace,
    name: str,
    x: np.ndarray,
    scale: np.ndarray | None = None,
    positions: int | np.ndarray | None = None,
) -> np.ndarray:
    """Apply a norm ("final_norm", "blocks.0.attn_norm") to vectors, (..., D) -> (..., D) in float64.

    A model with post-norm blocks has no `final_norm`, which then returns x. The run's interventions on the norm's
    output are applied.

    Args:
        x: (..., D).
        scale: (...), divisor instead of x's own `compute_norm_divisor`. With a fixed scale the norm is linear except
            for β of LayerNorm, so that the terms of a sum can be normalised one by one.
        positions: position of the vectors, or (T,) positions for x (..., T, D); required if interventions act at
            some positions only.
    """
    y = apply_norm_without_interventions(trace, name, x.astype(np.float64), positions, scale)
    changed = apply_intervention_linear_part(trace, name, y, positions)
    if not adds_constant(trace, name):
        return changed
    before = apply_norm_without_interventions(
        trace, name, trace[norm_input_tap(trace.config, name)][positions].astype(np.float64), positions
    )
    return changed + added_constant(trace, name, before, positions)


def apply_norm_without_interventions(
    trace: Trace,
    name: str,
    x: np.ndarray,
    positions: int | np.ndarray | None = None,
    scale: np.ndarray | None = None,
) -> np.ndarray:
    """Apply a norm without the interventions on its output."""
    if f"{name}.weight" not in trace.weights:
        return x
    scale = compute_norm_divisor(trace, x, name, positions) if scale is None else scale
    centre = subtract_layernorm_mean(x, norm_kinds(trace, name, positions))
    return centre / scale[..., None] * trace.weights[f"{name}.weight"] + norm_bias(trace, name, positions)


def apply_linearised_output_norm(trace: Trace, layer: int, sublayer: str, x: np.ndarray, position: int) -> np.ndarray:
    """Return the contribution of vectors (..., D) in a sublayer's output at a position to the residual stream.

    These are the vectors themselves, or the vectors after the output norm, with the scale of the whole output
    and without β.
    """
    norm = output_norm(trace.config, layer, sublayer)
    if norm is None:
        return x
    scale = compute_norm_divisor(trace, trace[norm_input_tap(trace.config, norm)][position], norm, position)
    return subtract_layernorm_mean(x, norm_kinds(trace, norm, position)) / scale * trace.weights[f"{norm}.weight"]


def norm_divisor(trace: Trace, norm: str, position: int) -> Derivation:
    """Derive the divisor of a norm for a token's vector."""
    tap, positions = norm_input_tap(trace.config, norm), np.arange(len(trace))
    displayed_value, kind = (
        get_element(compute_norm_divisor(trace, trace[tap], norm, positions), position),
        str(norm_kinds(trace, norm, position)),
    )
    x, read = read_input(trace, tap, position)
    squares, eps = float(mean_square_or_variance(x, norm_kinds(trace, norm, position))), trace.config.norm_eps
    value = math.sqrt(squares + eps) if kind != "none" else 1.0
    symbols = {"layernorm": _("√(var x + ε)"), "rmsnorm": _("√(mean x² + ε)"), "none": _("1: it does not divide")}[kind]
    numbers = (
        f"√({format_six_digits(squares)} + {format_six_digits(eps)}) = {format_six_digits(value)}"
        if kind != "none"
        else "= 1"
    )
    working = Calculation(symbols, lambda: numbers, value, (read,))
    source = SourceLine("explorer/analysis/norms.py", "np.sqrt((x**2).mean(-1) + trace.config.norm_eps)")
    return Derivation(
        _("what the norm divides by"), format_token_position(trace, position), displayed_value, working, source
    )
