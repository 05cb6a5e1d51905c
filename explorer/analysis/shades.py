"""What the tokens of the strip are shaded by."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from explorer.analysis.next_token import entropy, rank, surprisal
from explorer.language import N_, _, spoken
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace

Shaded = tuple[np.ndarray, list[str]]  # part of the full colour (T,) of each token, and its number in words
MOST_BITS = 12.0  # of surprisal, at which a token has its full colour: that of 1 in 4,096
MOST_WORDS = 1 << 14  # that are kept: where a text is written, all but the last token's are asked for again


@dataclass(frozen=True)
class Shade:
    """A number for each token.

    Attributes:
        words: what it is, to be looked up.
        values: trace -> (T,), NaN for the first token, which nothing precedes.
        share: (values, vocabulary size) -> the part of the full colour, 0 to 1 or more.
        told: a value in words.
    """

    words: str
    values: Callable[[Trace], np.ndarray]
    share: Callable[[np.ndarray, int], np.ndarray]
    told: Callable[[float], str]


SHADES = {
    "surprisal": Shade(
        N_("surprisal: how unexpected it was"),
        surprisal,
        lambda bits, size: bits / MOST_BITS,
        lambda bits: _("surprisal {bits:.2f} bits (probability {probability:.2g})", bits=bits, probability=2**-bits),
    ),
    "entropy": Shade(
        N_("entropy: how open the choice was"),
        entropy,
        lambda bits, size: bits / np.log2(size),
        lambda bits: _(
            "entropy before it {bits:.2f} bits (as open as {choices:,.1f} equal choices)", bits=bits, choices=2**bits
        ),
    ),
    "rank": Shade(
        N_("rank: its place among the guesses"),
        rank,
        lambda place, size: np.log2(place) / np.log2(size),
        lambda place: _("rank {place:,.0f} of the model's guesses", place=place),
    ),
}


def shaded(trace: Trace, name: str) -> Shaded:
    """Part of the full colour (T,), 0 to 1, and the number in words, of each token; 0 and "" for the first."""
    shade = SHADES[name]
    values = shade.values(trace)
    shares = np.nan_to_num(shade.share(values, trace.config.vocab_size)).clip(0, 1)
    return shares, ["" if math.isnan(value) else _told(name, value, spoken()) for value in values.tolist()]


@lru_cache(MOST_WORDS)
def _told(name: str, value: float, _language: str) -> str:
    return SHADES[name].told(value)


LEAST_BITS = 1.0  # of a difference, which has its full colour at the largest of a text, or at this where all are less


def shaded_by_change(comparison: Comparison) -> tuple[Shaded, Shaded]:
    """The same of both runs by how much more A is surprised by a token than B is by its partner: −1 to 1, in bits; 0
    where a token has no partner, or nothing precedes one of them."""
    bits, theirs = surprisal(comparison.trace), comparison.at_partners(surprisal(comparison.other))
    change = bits - theirs  # (T,)
    largest = max(LEAST_BITS, float(np.nanmax(np.abs(change), initial=0.0)))
    shares = np.nan_to_num(change / largest)
    words = [_change_told(*each) for each in zip(bits, theirs, change, strict=True)]
    back = comparison.alignment.back
    lone = _("it has no partner in the other run")
    first = [words[i] if partner is not None else lone for i, partner in enumerate(comparison.alignment.partners)]
    second = [words[place] if place is not None else lone for place in back]
    return (shares, first), (np.array([0.0 if place is None else shares[place] for place in back]), second)


def _change_told(bits: float, theirs: float, change: float) -> str:
    if np.isnan(change):
        return ""
    told = _("surprisal {a:.2f} bits in A, {b:.2f} in B: {change:+.2f}", a=bits, b=theirs, change=change)
    return told.replace("-", "−")
