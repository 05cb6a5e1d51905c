"""Words about numbers, whatever they count."""

import numpy as np

from explorer.analysis.embedding import principal_components, stream_at
from explorer.explain.notation import number, quoted
from explorer.language import N_, _
from explorer.lessons.glossary.entry import Entry, Look
from explorer.lessons.glossary.of_predictions import best, predicted


def last_vector(look: Look) -> np.ndarray:
    """(D,) in float64: what the last layer leaves at the chosen token."""
    last = look.trace.config.num_layers - 1
    return look.trace[f"blocks.{last}.resid_post"][look.selection.query].astype(np.float64)


def mean(look: Look) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {mean}.",
        count=look.trace.config.d_model,
        token=quoted(look.token),
        mean=number(last_vector(look).mean()),
    )


def median(look: Look) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {median}.",
        count=look.trace.config.d_model,
        token=quoted(look.token),
        median=number(float(np.median(last_vector(look)))),
    )


def variance(look: Look) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {variance}, the standard deviation {std}.",
        count=look.trace.config.d_model,
        token=quoted(look.token),
        variance=number(last_vector(look).var()),
        std=number(last_vector(look).std()),
    )


def root_mean_square(look: Look) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {rms}.",
        count=look.trace.config.d_model,
        token=quoted(look.token),
        rms=number(np.sqrt((last_vector(look) ** 2).mean())),
    )


def components(look: Look) -> str:
    shares = principal_components(stream_at(look.trace, look.selection.depth)).shares
    return _(
        "At depth {depth} the first takes {first} of the variance of the {tokens} tokens here, the second {second}.",
        depth=look.selection.depth,
        tokens=len(look.trace),
        first=number(shares[0]),
        second=number(shares[1]),
    )


def histogram(look: Look) -> str:
    value = look.trace[look.selection.tap]
    return _("{value} has {count:,} numbers here.", value=look.selection.tap, count=value.size)


def logarithm(look: Look) -> str:
    token, token_id = best(look)
    given = predicted(look).plain[token_id]
    return _(
        "The probability of {token} after {query} is {probability}, its log₂ {log}.",
        token=token,
        query=quoted(look.token),
        probability=number(given),
        log=number(np.log2(given)),
    )


ENTRIES = (
    Entry((N_("mean"),), N_("the sum of some numbers, over how many they are"), mean),
    Entry((N_("median"),), N_("the number in the middle, when all are put in order"), median),
    Entry(
        (N_("variance"), "var", N_("standard deviation")),
        N_("how far numbers lie apart: the mean of (x − mean)²; the standard deviation is its root"),
        variance,
    ),
    Entry(
        ("RMS", N_("root mean square")), N_("how large some numbers are: the root of the mean of x²"), root_mean_square
    ),
    Entry(
        ("PCA", N_("component")),
        N_("finds the directions in which vectors differ most: the first component, then others at right angles to it"),
        components,
    ),
    Entry((N_("histogram"),), N_("a bar for each stretch of numbers, as high as many of them lie in it"), histogram),
    Entry(
        (N_("logarithm"), "log₂", "ln", N_("log-probability"), N_("log")),
        N_("the power to which 2 (log₂) or e = 2.718… (ln) must be raised to give a number"),
        logarithm,
    ),
)
