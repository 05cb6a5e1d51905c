"""The logit lens, the prediction from intermediate layers (nostalgebraist 2020), and summaries of distributions."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.norms import apply_norm
from explorer.analysis.residual import residual_stages
from explorer.analysis.trace_cache import cache_per_trace
from explorer.analysis.unembedding import iter_logit_blocks, unembed_token
from explorer.architecture.residual_stream import lens_taps
from explorer.tracing.trace import Trace
from explorer.translations import N_

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


# name -> quantity that the cells are coloured by
LENSES = {
    "probability": N_("probability (likeliest)"),
    "target": N_("probability (explained)"),
    "rank": N_("rank (explained)"),
    "entropy": N_("entropy in bits"),
}
MAX_SUMMARIES = 16  # per trace, some 30 kB each


def depth_names(trace: Trace) -> tuple[str, ...]:
    """Return the names of the S depths of the lens: the embedding, then after each sum."""
    return tuple(stage.name for stage in residual_stages(trace, normed=False))


def lens_inputs(trace: Trace, positions: slice) -> np.ndarray:
    """Return the input of the unembedding at each depth if the rest of the model were skipped, (S, n, D).

    In most models this is the stream after the final norm. In a post-norm model it is the stream itself, which
    each sublayer normalises (`attn_norm`, `ffn_norm`) before the unembedding reads it; no norm
    follows the embedding, so it is used unchanged too.
    """
    names = lens_taps(trace.config)
    position_ids = np.arange(len(trace))[positions]
    return apply_norm(trace, "final_norm", np.stack([trace[name][positions] for name in names]), positions=position_ids)


def lens_summaries(trace: Trace, positions: range) -> LogitSummaries:
    """Return the distribution at every depth after `positions`, (S, n, ...).

    The latest summaries are cached per trace; a range within a cached range is not computed again.
    """
    summaries_by_range = SUMMARIES.setdefault(trace, {})
    if positions not in summaries_by_range:
        for other, summaries in list(summaries_by_range.items()):
            if other[0] <= positions[0] and positions[-1] <= other[-1]:
                return summaries.select(slice(positions.start - other.start, positions.stop - other.start))
        summaries = LogitSummaries.from_blocks(
            iter_lens_logits(trace, positions), len(depth_names(trace)) * len(positions), trace.config.vocab_size
        )
        summaries = summaries.reshape(-1, len(positions))
        for old in list(summaries_by_range)[: 1 - MAX_SUMMARIES]:
            summaries_by_range.pop(old, None)
        summaries_by_range[positions] = summaries
    return summaries_by_range[positions]


SUMMARIES: WeakKeyDictionary[Trace, dict[range, LogitSummaries]] = WeakKeyDictionary()


def iter_lens_logits(trace: Trace, positions: range, token_ids: Collection[int] = ()) -> Iterator[Block]:
    """Yield the logits at every depth after `positions`, in blocks of tokens for all depths at once.

    Reading the unembedding takes longer than the products with few vectors.

    Args:
        token_ids: restrict the result to the blocks of the vocabulary that contain one of these.
    """
    x = lens_inputs(trace, slice(positions.start, positions.stop))
    return iter_logit_blocks(trace, x.reshape(-1, x.shape[-1]), np.tile(np.array(positions), len(x)), token_ids)


def token_probabilities(trace: Trace, positions: range, token_id: int) -> np.ndarray:
    """Return the probability of one token at every depth after `positions`, (S, n)."""
    x = lens_inputs(trace, slice(positions.start, positions.stop))
    position_ids = np.array(positions)
    return np.exp(unembed_token(trace, x, token_id, position_ids) - lens_summaries(trace, positions).log_total)


def single_token_ranks(trace: Trace, positions: range, token_id: int) -> np.ndarray:
    """Return the rank of one token at every depth, (S, n): 1 + the number of more probable tokens."""
    return token_ranks(trace, positions, (token_id,))[0]


@cache_per_trace
def token_ranks(trace: Trace, positions: range, token_ids: tuple[int, ...]) -> np.ndarray:
    """Return the ranks of several tokens, (N, S, n), with one pass over the vocabulary."""
    token_logits = np.empty((len(token_ids), len(depth_names(trace)) * len(positions)), np.float32)
    for rows, tokens, logits in iter_lens_logits(trace, positions, token_ids=token_ids):
        for index, token_id in enumerate(token_ids):
            if tokens.start <= token_id < tokens.stop:
                token_logits[index, rows] = logits[:, token_id - tokens.start]
    return token_ranks_in_blocks(iter_lens_logits(trace, positions), token_logits).reshape(
        len(token_ids), -1, len(positions)
    )
