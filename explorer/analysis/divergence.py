"""How far two distributions are from each other, and on which tokens of two vocabularies they lie."""

from collections.abc import Sequence

import numpy as np


def kl_divergence(p: np.ndarray, q: np.ndarray) -> float:
    """D(p ‖ q) = Σ p log₂ (p / q) in bits, at least 0: infinite where p has what q has not, NaN of what is no number.

    Args:
        p, q: (V,) probabilities of the same tokens (Kullback & Leibler 1951).
    """
    p, q = (np.asarray(each, dtype=np.float64) for each in (p, q))
    if np.isnan(p).any() or np.isnan(q).any():
        return float("nan")
    has = p > 0
    with np.errstate(divide="ignore"):
        return float(max(0.0, (p[has] * (np.log2(p[has]) - np.log2(q[has]))).sum()))


def jensen_shannon_distance(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """√(½ D(p ‖ m) + ½ D(q ‖ m)) with m = ½ (p + q), in bits: 0 for the same, 1 where they share nothing (Endres &
    Schindelin 2003).

    Args:
        p, q: (..., n) probabilities of the same n outcomes; the result has their leading axes.
    """
    p, q = (np.asarray(each, dtype=np.float64) for each in (p, q))
    middle = (p + q) / 2

    def part(each: np.ndarray) -> np.ndarray:
        ratio = np.divide(each, middle, out=np.ones_like(each), where=each > 0)
        return np.where(np.isnan(each), np.nan, each * np.log2(ratio)).sum(-1) / 2

    return np.sqrt((part(p) + part(q)).clip(0, 1))


def on_vocabulary(values: np.ndarray, theirs: Sequence[str], mine: Sequence[str]) -> np.ndarray:
    """Values of one vocabulary's tokens (V',) as values of another's (V,), by the tokens' texts: NaN where it has none
    of that text."""
    if theirs is mine or theirs == mine:
        return values
    ids = {text: token_id for token_id, text in enumerate(theirs)}
    places = np.array([ids.get(text, -1) for text in mine])
    return np.where(places < 0, np.nan, np.asarray(values, dtype=float)[places])
