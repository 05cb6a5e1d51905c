"""What keeps a model's scores and logits within bounds: c · tanh(x / c), where it has a cap c."""

import numpy as np


def capped(x: np.ndarray, cap: float | None) -> np.ndarray:
    """Numbers as a cap leaves them; they themselves where there is none."""
    return x if cap is None else cap * np.tanh(x / cap)


def share(x: np.ndarray, cap: float) -> np.ndarray:
    """What a cap multiplies each number by: capped(x) / x, 1 at 0."""
    return np.divide(capped(x, cap), x, out=np.ones_like(x), where=x != 0)


def written(x: str, cap: float) -> str:
    """As a formula has it, as in "50 · tanh(score / 50)"."""
    return f"{cap:g} · tanh({x} / {cap:g})"
