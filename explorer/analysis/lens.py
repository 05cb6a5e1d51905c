"""The logit lens: what the model would say next if it stopped at some depth (nostalgebraist 2020)."""

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.norms import apply_norm
from explorer.analysis.residual import stages
from explorer.analysis.unembedding import unembed, unembed_token
from explorer.architecture.stream import depth_taps
from explorer.language import N_
from explorer.tracing.logits import CHUNK_BYTES
from explorer.tracing.trace import Trace

# name -> what the colour of a cell then is
LENSES = {
    "probability": N_("probability (likeliest)"),
    "target": N_("probability (explained)"),
    "rank": N_("rank (explained)"),
    "entropy": N_("entropy in bits"),
}
TOP = 3
MOST_READINGS = 4  # kept of a run, some 30 kB each


@dataclass(frozen=True)
class Readings:
    """Distributions over the vocabulary in a few numbers; the leading axes are those of the logits.

    Attributes:
        top: (..., 3) ids of the likeliest tokens, likeliest first.
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
        shifted = logits - logits.max(-1, keepdims=True)
        exps = np.exp(shifted)
        total = exps.sum(-1, dtype=np.float64)
        log_total = np.log(total)
        entropy = np.maximum(0, log_total - np.einsum("...v,...v->...", exps, shifted) / total) / np.log(2)
        top = []
        for _place in range(min(TOP, logits.shape[-1])):  # three times the largest is faster than to sort
            top.append(exps.argmax(-1))
            np.put_along_axis(exps, top[-1][..., None], -1, axis=-1)
        top = np.stack(top, axis=-1)
        probabilities = np.exp(np.take_along_axis(shifted, top, -1) - log_total[..., None])
        return cls(top, probabilities, log_total + logits.max(-1), entropy)


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
    """The distribution at every depth after the positions `shown`: (S, n, ...). The last few are kept."""
    known = READINGS.setdefault(trace, {})
    if (found := known.get(shown)) is None:
        parts = [Readings.of(logits) for logits in logits_of(trace, shown)]
        fields = ("top", "probabilities", "log_total", "entropy")
        found = Readings(*(np.stack([getattr(part, field) for part in parts]) for field in fields))
        for old in list(known)[: 1 - MOST_READINGS]:
            known.pop(old, None)
        known[shown] = found
    return found


READINGS: WeakKeyDictionary[Trace, dict[range, Readings]] = WeakKeyDictionary()


def logits_of(trace: Trace, shown: range) -> Iterator[np.ndarray]:
    """At every depth the logits (n, V) after the positions `shown`; of few positions several depths at once, as reading
    the unembedding takes longer than the products do."""
    x, at_once = streams(trace, slice(shown.start, shown.stop)), CHUNK_BYTES // (4 * trace.config.vocab_size)
    step = max(1, at_once // len(shown))
    for first in range(0, len(x), step):
        yield from unembed(trace, x[first : first + step], np.array(shown))


def tracked(trace: Trace, shown: range, token_id: int) -> np.ndarray:
    """(S, n), the probability of one token at every depth, after the positions `shown`."""
    x = streams(trace, slice(shown.start, shown.stop))
    at = np.array(shown)
    return np.exp(unembed_token(trace, x, token_id, at) - readings(trace, shown).log_total)


def ranks(trace: Trace, shown: range, token_id: int) -> np.ndarray:
    """(S, n), the rank of one token at every depth: 1 + the number of likelier ones."""
    return np.stack([(logits > logits[:, [token_id]]).sum(-1) + 1 for logits in logits_of(trace, shown)])
