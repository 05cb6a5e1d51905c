"""Where two runs part: how far their streams, patterns and predictions are from each other, at tokens that stand beside
each other."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.change import resolution
from explorer.analysis.divergence import jensen_shannon_distance, on_vocabulary
from explorer.analysis.next_token import next_token, surprisal
from explorer.analysis.residual import stages
from explorer.tracing.comparison import Comparison


def stream_distance(comparison: Comparison) -> np.ndarray:
    """(S, T), ‖x_A − x_B‖ / ‖x_B‖ of the residual stream at A's `stages`; NaN where a token has no partner.

    Raises:
        KeyError: B has not all of A's stages.
        ValueError: its stream has another width.
    """
    found = []
    for stage in stages(comparison.trace):
        both = comparison.trace[stage.tap], comparison.of_other(stage.tap)
        mine, theirs = (vectors.astype(np.float64) for vectors in both)  # (T, D)
        apart, lengths = np.linalg.norm(mine - theirs, axis=-1), np.linalg.norm(theirs, axis=-1)
        found.append(np.divide(apart, lengths, out=np.full_like(apart, np.nan), where=lengths > 0))
    return np.stack(found)


def pattern_distances(comparison: Comparison, layer: int) -> np.ndarray:
    """(H, T) in [0, 1], the Jensen-Shannon distance of every head's weights of every query from its partner's, over the
    keys of both runs, those that are partners taken for one; NaN where a query has no partner.

    Raises:
        KeyError: B has no such layer.
        ValueError: it has another number of heads.
    """
    name = f"blocks.{layer}.attn.pattern"
    mine, theirs = comparison.trace[name], comparison.other[name]
    if mine.shape[0] != theirs.shape[0]:
        raise ValueError(f"A has {mine.shape[0]} heads a layer, B {theirs.shape[0]}")
    rows = comparison.at_partners(theirs, -2)  # (H, T, T') of the queries' partners
    beside = np.nan_to_num(comparison.at_partners(rows, -1))  # (H, T, T) of the keys' partners
    beside[np.isnan(rows).all(-1)] = np.nan
    lone = [key for key, partner in enumerate(comparison.alignment.back) if partner is None]
    extra = rows[..., lone]  # (H, T, n): B's keys that stand for none of A's
    p = np.concatenate([mine, np.zeros_like(extra)], axis=-1)
    return jensen_shannon_distance(p, np.concatenate([beside, extra], axis=-1))


def head_distance(comparison: Comparison) -> np.ndarray:
    """(L, H), the mean of `pattern_distances` over the queries that have partners."""
    layers = range(comparison.trace.config.num_layers)
    return np.stack([np.nanmean(pattern_distances(comparison, layer), axis=-1) for layer in layers])


def surprisal_difference(comparison: Comparison) -> np.ndarray:
    """(T,) bits, each token's surprisal in A − its partner's in B; NaN where there is none."""
    return surprisal(comparison.trace) - comparison.at_partners(surprisal(comparison.other))


def next_tokens(comparison: Comparison, query: int) -> tuple[np.ndarray, np.ndarray]:
    """(V,) each: the models' probabilities of A's tokens after a query of A, and after the nearest partner in B; NaN of
    tokens that B's model has not."""
    trace, other = comparison.runs
    theirs = next_token(other, comparison.alignment.nearest(query)).plain
    return next_token(trace, query).plain, on_vocabulary(theirs, other.vocabulary, trace.vocabulary)


@dataclass(frozen=True)
class FirstDifference:
    """The first value, in the order in which they are computed, that differs by more than rounding.

    Attributes:
        tap: the value's name.
        position: of A's first token at which it does.
        partner: of that token's partner in B.
        largest: |A − B| there at most.
    """

    tap: str
    position: int
    partner: int
    largest: float


def first_difference(comparison: Comparison) -> FirstDifference | None:
    """None where the runs are the same but for rounding, at all tokens that have partners.

    A difference counts from `resolution` times the largest number of the value, or 1 where all are smaller.
    """
    limit = resolution(comparison)
    for tap, mine in comparison.trace.values.items():
        if tap not in comparison.other:
            continue
        theirs = comparison.of_other(tap)
        if mine.shape != theirs.shape:
            continue
        with np.errstate(invalid="ignore"):  # masked scores are infinite in both
            apart = np.abs(mine - theirs)
        apart = np.nan_to_num(apart.max(-1), nan=0.0) if apart.ndim < 3 else np.nan_to_num(apart).max((0, -1))
        size = np.abs(mine[np.isfinite(mine)]).max(initial=1.0)
        (places,) = np.nonzero(apart > limit * size)
        if len(places):
            position = int(places[0])
            partner = comparison.alignment.partners[position]
            return FirstDifference(tap, position, partner, float(apart[position]))
    return None
