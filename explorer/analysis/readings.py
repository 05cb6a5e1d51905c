"""Distributions over the vocabulary in a few numbers each, read through without all of their logits being there."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

TOP = 3
Block = tuple[slice, slice, np.ndarray]  # which distributions, which tokens; their logits (n, m)


@dataclass(frozen=True)
class Readings:
    """Distributions; the leading axes are those of the logits.

    Attributes:
        top: (..., 3) ids of the likeliest tokens, likeliest first; of equal ones the lower id.
        probabilities: (..., 3), theirs.
        log_total: (...) ln Σ e^logits, so that ln p = logit - log_total.
        entropy: (...) -Σ p log₂ p, bits.
    """

    top: np.ndarray
    probabilities: np.ndarray
    log_total: np.ndarray
    entropy: np.ndarray

    @classmethod
    def of(cls, logits: np.ndarray) -> "Readings":
        """(..., V) logits."""
        count, size = int(np.prod(logits.shape[:-1])), logits.shape[-1]
        blocks = [(slice(0, count), slice(0, size), logits.reshape(count, size))]
        return cls.of_blocks(blocks, count, size).reshaped(*logits.shape[:-1])

    @classmethod
    def of_blocks(cls, blocks: Iterable[Block], count: int, vocab_size: int) -> "Readings":
        """(N,) of distributions whose tokens come in parts, for each from the first on."""
        largest, total, weighted = np.full(count, -np.inf), np.zeros(count), np.zeros(count)
        kept = min(TOP, vocab_size)
        top, best = np.full((count, kept), vocab_size), np.full((count, kept), -np.inf)
        for rows, tokens, logits in blocks:
            most = logits.max(-1)
            shifted = logits - most[:, None]
            exps = np.exp(shifted)
            part = exps.sum(-1), np.einsum("nv,nv->n", exps, shifted)
            before = largest[rows], total[rows], weighted[rows]
            largest[rows], total[rows], weighted[rows] = _together(before, (most.astype(np.float64), *part))
            ids, values = _likeliest(shifted, logits, min(kept, logits.shape[-1]))
            ids = np.concatenate([top[rows], ids + tokens.start], axis=-1)
            values = np.concatenate([best[rows], values], axis=-1)
            first = np.where(np.isnan(values), -np.inf, -values)  # what is not a number comes first, as in `argmax`
            order = np.lexsort((ids, first), axis=-1)[:, :kept]
            top[rows], best[rows] = np.take_along_axis(ids, order, -1), np.take_along_axis(values, order, -1)
        log_total = np.log(total)  # of what is relative to the largest
        entropy = np.maximum(0, log_total - weighted / total) / np.log(2)
        probabilities = np.exp(best - largest[:, None] - log_total[:, None])
        return cls(top, probabilities, log_total + largest, entropy)

    def reshaped(self, *shape: int) -> "Readings":
        """The same with other leading axes."""
        tops = (array.reshape(*shape, array.shape[-1]) for array in (self.top, self.probabilities))
        return Readings(*tops, self.log_total.reshape(shape), self.entropy.reshape(shape))

    def among(self, places: slice) -> "Readings":
        """Of (S, n, ...) those at some places along the second axis."""
        return Readings(*(array[:, places] for array in (self.top, self.probabilities, self.log_total, self.entropy)))


Sums = tuple[np.ndarray, np.ndarray, np.ndarray]  # largest logit m, Σ e^(logit - m), Σ e^(logit - m) (logit - m)


def _together(one: Sums, other: Sums) -> Sums:
    """Of the tokens of two parts, where the first may have none yet."""
    largest = np.maximum(one[0], other[0])
    total, weighted = np.zeros_like(largest), np.zeros_like(largest)
    for most, sums, products in (one, other):
        gap = np.where(sums > 0, most - largest, 0.0)
        total, weighted = total + np.exp(gap) * sums, weighted + np.exp(gap) * (products + gap * sums)
    return largest, total, weighted


def _likeliest(shifted: np.ndarray, logits: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, count) places of the largest logits (n, m), and these; `shifted`, in the same order, is used up."""
    ids = []
    for _place in range(count):  # three times the largest is faster than to sort
        ids.append(shifted.argmax(-1))
        np.put_along_axis(shifted, ids[-1][:, None], -np.inf, axis=-1)
    found = np.stack(ids, axis=-1)
    return found, np.take_along_axis(logits, found, -1).astype(np.float64)


def ranks_among(blocks: Iterable[Block], logits: np.ndarray) -> np.ndarray:
    """(n, N) the ranks of n tokens in each of N distributions, 1 + the number of likelier ones, from theirs (n, N)."""
    likelier = np.zeros(logits.shape, int)
    for rows, _tokens, part in blocks:
        for count, own in zip(likelier, logits, strict=True):
            count[rows] += (part > own[rows, None]).sum(-1)
    return likelier + 1
