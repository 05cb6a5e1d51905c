"""Summaries of next-token distributions, computed block by block without storing all logits."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

TOP = 3
Block = tuple[slice, slice, np.ndarray]  # slice of distributions, slice of tokens, logits (n, m)


@dataclass(frozen=True)
class LogitSummaries:
    """Summaries of distributions; the leading axes are those of the logits.

    Attributes:
        top: (..., 3) ids of the most probable tokens, most probable first; ties by lower id.
        probabilities: (..., 3), their probabilities.
        log_total: (...) ln Σ e^logits, so that ln p = logit - log_total.
        entropy: (...) -Σ p log₂ p, bits.
    """

    top: np.ndarray
    probabilities: np.ndarray
    log_total: np.ndarray
    entropy: np.ndarray

    @classmethod
    def from_logits(cls, logits: np.ndarray) -> "LogitSummaries":
        """Summarise logits (..., V)."""
        count, size = int(np.prod(logits.shape[:-1])), logits.shape[-1]
        blocks = [(slice(0, count), slice(0, size), logits.reshape(count, size))]
        return cls.from_blocks(blocks, count, size).reshape(*logits.shape[:-1])

    @classmethod
    def from_blocks(cls, blocks: Iterable[Block], count: int, vocab_size: int) -> "LogitSummaries":
        """Summarise `count` distributions from blocks of logits; for each, blocks are in the order of token ids."""
        largest, total, weighted = np.full(count, -np.inf), np.zeros(count), np.zeros(count)
        num_top = min(TOP, vocab_size)
        top, best = np.full((count, num_top), vocab_size), np.full((count, num_top), -np.inf)
        for rows, tokens, logits in blocks:
            block_largest = logits.max(-1)
            shifted = logits - block_largest[:, None]
            exps = np.exp(shifted)
            block_sums = exps.sum(-1), np.einsum("nv,nv->n", exps, shifted)
            before = largest[rows], total[rows], weighted[rows]
            largest[rows], total[rows], weighted[rows] = _merge(before, (block_largest.astype(np.float64), *block_sums))
            ids, values = _top_logits(shifted, logits, min(num_top, logits.shape[-1]))
            ids = np.concatenate([top[rows], ids + tokens.start], axis=-1)
            values = np.concatenate([best[rows], values], axis=-1)
            first = np.where(np.isnan(values), -np.inf, -values)  # NaN comes first, as in `argmax`
            order = np.lexsort((ids, first), axis=-1)[:, :num_top]
            top[rows], best[rows] = np.take_along_axis(ids, order, -1), np.take_along_axis(values, order, -1)
        log_total = np.log(total)  # relative to the largest logit
        entropy = np.maximum(0, log_total - weighted / total) / np.log(2)
        probabilities = np.exp(best - largest[:, None] - log_total[:, None])
        return cls(top, probabilities, log_total + largest, entropy)

    def reshape(self, *shape: int) -> "LogitSummaries":
        """Return the summaries with other leading axes."""
        tops = (array.reshape(*shape, array.shape[-1]) for array in (self.top, self.probabilities))
        return LogitSummaries(*tops, self.log_total.reshape(shape), self.entropy.reshape(shape))

    def select(self, indices: slice) -> "LogitSummaries":
        """Return the summaries (S, n, ...) at some indices of the second axis."""
        return LogitSummaries(
            *(array[:, indices] for array in (self.top, self.probabilities, self.log_total, self.entropy))
        )


Sums = tuple[np.ndarray, np.ndarray, np.ndarray]  # largest logit m, Σ e^(logit - m), Σ e^(logit - m) (logit - m)


def _merge(one: Sums, other: Sums) -> Sums:
    """Merge the sums of two sets of tokens; the first may be empty."""
    largest = np.maximum(one[0], other[0])
    total, weighted = np.zeros_like(largest), np.zeros_like(largest)
    for own_largest, sums, products in (one, other):
        gap = np.where(sums > 0, own_largest - largest, 0.0)
        total, weighted = total + np.exp(gap) * sums, weighted + np.exp(gap) * (products + gap * sums)
    return largest, total, weighted


def _top_logits(shifted: np.ndarray, logits: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices (n, count) and values of the largest logits (n, m).

    `shifted` has the same order and is overwritten.
    """
    ids = []
    for _rank in range(count):  # repeated argmax is faster than sorting
        ids.append(shifted.argmax(-1))
        np.put_along_axis(shifted, ids[-1][:, None], -np.inf, axis=-1)
    indices = np.stack(ids, axis=-1)
    return indices, np.take_along_axis(logits, indices, -1).astype(np.float64)


def token_ranks_in_blocks(blocks: Iterable[Block], logits: np.ndarray) -> np.ndarray:
    """Return the ranks of n tokens in each of N distributions, (n, N), given their logits (n, N).

    A rank is 1 + the number of more probable tokens.
    """
    likelier = np.zeros(logits.shape, int)
    for rows, _tokens, block_logits in blocks:
        for count, token_logits in zip(likelier, logits, strict=True):
            count[rows] += (block_logits > token_logits[rows, None]).sum(-1)
    return likelier + 1
