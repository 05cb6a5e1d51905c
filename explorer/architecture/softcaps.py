"""Soft-capping of scores and logits: c · tanh(x / c) with a cap c."""

import numpy as np


def softcap(x: np.ndarray, cap: float | None) -> np.ndarray:
    """Return soft-capped numbers; unchanged without a cap."""
    return x if cap is None else cap * np.tanh(x / cap)


def softcap_factor(x: np.ndarray, cap: float) -> np.ndarray:
    """Return the factor by which a cap scales each number: softcap(x) / x, 1 at 0."""
    return np.divide(softcap(x, cap), x, out=np.ones_like(x), where=x != 0)


def softcap_formula(x: str, cap: float) -> str:
    """Return the formula of a soft cap, for example "50 · tanh(score / 50)"."""
    return f"{cap:g} · tanh({x} / {cap:g})"
