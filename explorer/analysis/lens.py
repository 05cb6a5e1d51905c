"""The logit lens: what the model would say next if it stopped at some depth (nostalgebraist 2020)."""

from collections.abc import Collection, Iterator
from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.kept import kept_by_trace
from explorer.analysis.norms import apply_norm
from explorer.analysis.readings import Block, Readings, ranks_among
from explorer.analysis.residual import stages
from explorer.analysis.unembedding import unembed_in_parts, unembed_token
from explorer.architecture.stream import depth_taps
from explorer.language import N_
from explorer.tracing.trace import Trace

# name -> what the colour of a cell then is
LENSES = {
    "probability": N_("probability (likeliest)"),
    "target": N_("probability (explained)"),
    "rank": N_("rank (explained)"),
    "entropy": N_("entropy in bits"),
}
MOST_READINGS = 16  # kept of a run, some 30 kB each


def depths(trace: Trace) -> tuple[str, ...]:
    """Where the lens reads, S places: the embedding, then after each sum."""
    return tuple(stage.name for stage in stages(trace, normed=False))


def streams(trace: Trace, positions: slice) -> np.ndarray:
    """(S, n, D): what the unembedding would read at each depth if the rest of the model were skipped.

    In most models that is the stream through the final norm. In a post-norm model it is the stream itself, which
    each sublayer leaves normalised (`attn_norm`, `ffn_norm`) and the unembedding reads as the last one left it; no norm
    stands between the embedding and what reads it, so that is read as it is too.
    """
    names = depth_taps(trace.config)
    places = np.arange(len(trace))[positions]
    return apply_norm(trace, "final_norm", np.stack([trace[name][positions] for name in names]), positions=places)


def readings(trace: Trace, shown: range) -> Readings:
    """The distribution at every depth after the positions `shown`: (S, n, ...). The last few are kept, and positions
    among those of one of them are not read again."""
    known = READINGS.setdefault(trace, {})
    if shown not in known:
        for other, found in list(known.items()):
            if other[0] <= shown[0] and shown[-1] <= other[-1]:
                return found.among(slice(shown.start - other.start, shown.stop - other.start))
        found = Readings.of_blocks(logits_of(trace, shown), len(depths(trace)) * len(shown), trace.config.vocab_size)
        found = found.reshaped(-1, len(shown))
        for old in list(known)[: 1 - MOST_READINGS]:
            known.pop(old, None)
        known[shown] = found
    return known[shown]


READINGS: WeakKeyDictionary[Trace, dict[range, Readings]] = WeakKeyDictionary()


def logits_of(trace: Trace, shown: range, having: Collection[int] = ()) -> Iterator[Block]:
    """The logits at every depth after the positions `shown`, depth by depth: of all these places, some tokens at a
    time, as reading the unembedding takes longer than the products with few of them do.

    Args:
        having: tokens, if only those parts of the vocabulary are wanted that have one of them.
    """
    x = streams(trace, slice(shown.start, shown.stop))
    return unembed_in_parts(trace, x.reshape(-1, x.shape[-1]), np.tile(np.array(shown), len(x)), having)


def tracked(trace: Trace, shown: range, token_id: int) -> np.ndarray:
    """(S, n), the probability of one token at every depth, after the positions `shown`."""
    x = streams(trace, slice(shown.start, shown.stop))
    at = np.array(shown)
    return np.exp(unembed_token(trace, x, token_id, at) - readings(trace, shown).log_total)


def ranks(trace: Trace, shown: range, token_id: int) -> np.ndarray:
    """(S, n), the rank of one token at every depth: 1 + the number of likelier ones."""
    return ranks_of(trace, shown, (token_id,))[0]


@kept_by_trace
def ranks_of(trace: Trace, shown: range, token_ids: tuple[int, ...]) -> np.ndarray:
    """(N, S, n), those of some tokens, for which the vocabulary is read through once."""
    own = np.empty((len(token_ids), len(depths(trace)) * len(shown)), np.float32)
    for rows, tokens, logits in logits_of(trace, shown, having=token_ids):
        for place, token_id in enumerate(token_ids):
            if tokens.start <= token_id < tokens.stop:
                own[place, rows] = logits[:, token_id - tokens.start]
    return ranks_among(logits_of(trace, shown), own).reshape(len(token_ids), -1, len(shown))
