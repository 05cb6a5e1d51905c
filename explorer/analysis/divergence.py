"""Divergences between two distributions, and alignment of two vocabularies."""

from collections.abc import Sequence

import numpy as np


def kl_divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Return D(p ‖ q) = Σ p log₂ (p / q) in bits, at least 0.

    Infinite if q is 0 at a token where p is not; NaN if an input is NaN.

    Args:
        p, q: (V,) probabilities of the same tokens (Kullback & Leibler 1951).
    """
    p, q = (np.asarray(probabilities, dtype=np.float64) for probabilities in (p, q))
    if np.isnan(p).any() or np.isnan(q).any():
        return float("nan")
    has = p > 0
    with np.errstate(divide="ignore"):
        return float(max(0.0, (p[has] * (np.log2(p[has]) - np.log2(q[has]))).sum()))


def jensen_shannon_distance(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return √(½ D(p ‖ m) + ½ D(q ‖ m)) with m = ½ (p + q), in bits (Endres & Schindelin 2003).

    0 for equal distributions, 1 for distributions with disjoint support.

    Args:
        p, q: (..., n) probabilities of the same n outcomes; the result has the leading axes.
    """
    p, q = (np.asarray(probabilities, dtype=np.float64) for probabilities in (p, q))
    mixture = (p + q) / 2

    def half_kl_divergence(distribution: np.ndarray) -> np.ndarray:
        ratio = np.divide(distribution, mixture, out=np.ones_like(distribution), where=distribution > 0)
        return np.where(np.isnan(distribution), np.nan, distribution * np.log2(ratio)).sum(-1) / 2

    return np.sqrt((half_kl_divergence(p) + half_kl_divergence(q)).clip(0, 1))


def align_to_vocabulary(values: np.ndarray, source_tokens: Sequence[str], target_tokens: Sequence[str]) -> np.ndarray:
    """Map values of the source vocabulary's tokens (V',) to the target vocabulary (V,), by token text.

    NaN for tokens whose text the source vocabulary lacks.
    """
    if source_tokens is target_tokens or source_tokens == target_tokens:
        return values
    ids = {text: token_id for token_id, text in enumerate(source_tokens)}
    indices = np.array([ids.get(text, -1) for text in target_tokens])
    return np.where(indices < 0, np.nan, np.asarray(values, dtype=float)[indices])
