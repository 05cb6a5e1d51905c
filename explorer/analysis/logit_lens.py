"""The logit lens: the next-token prediction from intermediate layers (nostalgebraist 2020)."""

from collections.abc import Collection, Iterator
from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.logit_summaries import Block, LogitSummaries, token_ranks_in_blocks
from explorer.analysis.norms import apply_norm
from explorer.analysis.residual import residual_stages
from explorer.analysis.trace_cache import cache_per_trace
from explorer.analysis.unembedding import iter_logit_blocks, unembed_token
from explorer.architecture.residual_stream import lens_taps
from explorer.tracing.trace import Trace
from explorer.translations import N_

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
