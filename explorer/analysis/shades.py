"""What the tokens of the strip are shaded by."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from explorer.analysis.next_token import entropy, rank, surprisal
from explorer.language import N_, _
from explorer.tracing.trace import Trace

MOST_BITS = 12.0  # of surprisal, at which a token has its full colour: that of 1 in 4,096


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


def shaded(trace: Trace, name: str) -> tuple[np.ndarray, list[str]]:
    """Part of the full colour (T,), 0 to 1, and the number in words, of each token; 0 and "" for the first."""
    shade = SHADES[name]
    values = shade.values(trace)
    shares = np.nan_to_num(shade.share(values, trace.config.vocab_size)).clip(0, 1)
    return shares, ["" if np.isnan(value) else shade.told(float(value)) for value in values]
