"""Shading of the token strip by surprisal, entropy or rank."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from explorer.analysis.next_token import actual_token_ranks, entropy, surprisal
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, current_locale

Shaded = tuple[np.ndarray, list[str]]  # fraction of the full colour (T,), and a text per token
MAX_BITS = 12.0  # surprisal at full colour: a probability of 1 in 4,096
MAX_CACHED_TEXTS = 1 << 14  # during generation all but the last token repeat


@dataclass(frozen=True)
class ShadingMeasure:
    """A measure that tokens are shaded by.

    Attributes:
        description: translatable text.
        values: trace -> (T,), NaN for the first token.
        share: (values, vocabulary size) -> fraction of the full colour, 0 to 1 or more.
        format_value: value -> text.
    """

    description: str
    values: Callable[[Trace], np.ndarray]
    share: Callable[[np.ndarray, int], np.ndarray]
    format_value: Callable[[float], str]


SHADES = {
    "surprisal": ShadingMeasure(
        N_("surprisal: how unexpected it was"),
        surprisal,
        lambda bits, size: bits / MAX_BITS,
        lambda bits: _("surprisal {bits:.2f} bits (probability {probability:.2g})", bits=bits, probability=2**-bits),
    ),
    "entropy": ShadingMeasure(
        N_("entropy: how open the choice was"),
        entropy,
        lambda bits, size: bits / np.log2(size),
        lambda bits: _(
            "entropy before it {bits:.2f} bits (as open as {choices:,.1f} equal choices)", bits=bits, choices=2**bits
        ),
    ),
    "rank": ShadingMeasure(
        N_("rank: its place among the guesses"),
        actual_token_ranks,
        lambda place, size: np.log2(place) / np.log2(size),
        lambda place: _("rank {place:,.0f} of the model’s guesses", place=place),
    ),
}


def shade_tokens(trace: Trace, name: str) -> Shaded:
    """Return the fraction of the full colour (T,), 0 to 1, and the text of each token; 0 and "" for the first."""
    shade = SHADES[name]
    values = shade.values(trace)
    shares = np.nan_to_num(shade.share(values, trace.config.vocab_size)).clip(0, 1)
    return shares, [
        "" if math.isnan(value) else _format_value(name, value, current_locale()) for value in values.tolist()
    ]


@lru_cache(MAX_CACHED_TEXTS)
def _format_value(name: str, value: float, _language: str) -> str:
    return SHADES[name].format_value(value)


MIN_SCALE_BITS = 1.0  # minimum difference at full colour, even if all differences are smaller


def shade_by_surprisal_difference(comparison: Comparison) -> tuple[Shaded, Shaded]:
    """Shade both runs by the surprisal in A minus that of the aligned token in B.

    Fractions from −1 to 1, relative to the largest difference in bits; 0 for unaligned tokens and first tokens.
    """
    bits, partner_bits = surprisal(comparison.trace), comparison.take_aligned(surprisal(comparison.other))
    change = bits - partner_bits  # (T,)
    largest = max(MIN_SCALE_BITS, float(np.nanmax(np.abs(change), initial=0.0)))
    shares = np.nan_to_num(change / largest)
    texts = [_format_surprisal_difference(*values) for values in zip(bits, partner_bits, change, strict=True)]
    partners_of_b = comparison.alignment.inverse
    no_partner_text = _("it has no partner in the other run")
    first = [
        texts[i] if partner is not None else no_partner_text for i, partner in enumerate(comparison.alignment.partners)
    ]
    second = [texts[index] if index is not None else no_partner_text for index in partners_of_b]
    return (shares, first), (np.array([0.0 if index is None else shares[index] for index in partners_of_b]), second)


def _format_surprisal_difference(bits: float, partner_bits: float, change: float) -> str:
    if np.isnan(change):
        return ""
    text = _("surprisal {a:.2f} bits in A, {b:.2f} in B: {change:+.2f}", a=bits, b=partner_bits, change=change)
    return text.replace("-", "−")
