"""From logits to a token: pure functions on numpy arrays, used by the generator and by the picture of it alike."""

import numpy as np


def sampling_distribution(logits: np.ndarray, temperature: float = 1.0, top_k: int | None = None) -> np.ndarray:
    """Probabilities (V,) the next token is drawn from: softmax(logits / temperature) over the k largest logits.

    Exactly k tokens keep a probability; of equal logits the lower ids are kept. Temperature 0 gives the largest logit
    probability 1 (argmax). `top_k` None or 0 keeps all.

    Args:
        logits: (V,).

    Raises:
        ValueError: the temperature is negative or not finite, or top_k is negative.
    """
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature must be 0 or more, got {temperature}")
    if top_k is not None and top_k < 0:
        raise ValueError(f"top_k must be 0 (keep all) or more, got {top_k}")
    logits = np.asarray(logits, dtype=np.float64)
    k = 1 if temperature == 0 else top_k or len(logits)
    kept = largest(logits, k) if k < len(logits) else slice(None)
    weights = np.exp((logits[kept] - logits.max()) / (temperature or 1.0))
    probabilities = np.zeros_like(logits)
    probabilities[kept] = weights / weights.sum()
    return probabilities


def largest(values: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k < N largest of `values` (N,), in order of index; of equal values the lower are taken."""
    threshold = np.partition(values, -k)[-k]
    above = np.flatnonzero(values > threshold)
    ties = np.flatnonzero(values == threshold)
    return np.sort(np.concatenate([above, ties[: k - len(above)]]))


def draw(probabilities: np.ndarray, u: float) -> int:
    """The token whose stretch of the cumulative probability holds u.

    Args:
        probabilities: (V,), summing to 1.
        u: in [0, 1); uniform u draws each token with its probability.
    """
    cumulative = np.cumsum(probabilities)
    return int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
