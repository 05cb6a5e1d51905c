"""Glossary entries on statistics."""

import numpy as np

from explorer.analysis.embedding import principal_components, residual_at_depth
from explorer.explain.notation import format_number, quote_token
from explorer.lessons.glossary.entry import Entry, GlossaryContext
from explorer.lessons.glossary.predictions import likeliest_token, predict_next_token
from explorer.translations import N_, _


def last_layer_output(context: GlossaryContext) -> np.ndarray:
    """Return the last layer's output at the selected token, (D,) in float64."""
    last = context.trace.config.num_layers - 1
    return context.trace[f"blocks.{last}.resid_post"][context.selection.query].astype(np.float64)


def mean_example(context: GlossaryContext) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {mean}.",
        count=context.trace.config.d_model,
        token=quote_token(context.token),
        mean=format_number(last_layer_output(context).mean()),
    )


def median_example(context: GlossaryContext) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {median}.",
        count=context.trace.config.d_model,
        token=quote_token(context.token),
        median=format_number(float(np.median(last_layer_output(context)))),
    )


def variance_example(context: GlossaryContext) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {variance}, the standard deviation {std}.",
        count=context.trace.config.d_model,
        token=quote_token(context.token),
        variance=format_number(last_layer_output(context).var()),
        std=format_number(last_layer_output(context).std()),
    )


def root_mean_square_example(context: GlossaryContext) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {rms}.",
        count=context.trace.config.d_model,
        token=quote_token(context.token),
        rms=format_number(np.sqrt((last_layer_output(context) ** 2).mean())),
    )


def principal_components_example(context: GlossaryContext) -> str:
    shares = principal_components(residual_at_depth(context.trace, context.selection.residual_depth)).shares
    return _(
        "At depth {depth} the first takes {first} of the variance of the {tokens} tokens here, the second {second}.",
        depth=context.selection.residual_depth,
        tokens=len(context.trace),
        first=format_number(shares[0]),
        second=format_number(shares[1]),
    )


def histogram_example(context: GlossaryContext) -> str:
    value = context.trace[context.selection.tap]
    return _("{value} has {count:,} numbers here.", value=context.selection.tap, count=value.size)


def logarithm_example(context: GlossaryContext) -> str:
    token, token_id = likeliest_token(context)
    probability = predict_next_token(context).plain[token_id]
    return _(
        "The probability of {token} after {query} is {probability}, its log₂ {log}.",
        token=token,
        query=quote_token(context.token),
        probability=format_number(probability),
        log=format_number(np.log2(probability)),
    )


ENTRIES = (
    Entry((N_("mean"),), N_("the sum of some numbers, over how many they are"), mean_example),
    Entry((N_("median"),), N_("the number in the middle, when all are put in order"), median_example),
    Entry(
        (N_("variance"), "var", N_("standard deviation")),
        N_("how far numbers lie apart: the mean of (x − mean)²; the standard deviation is its root"),
        variance_example,
    ),
    Entry(
        ("RMS", N_("root mean square")),
        N_("how large some numbers are: the root of the mean of x²"),
        root_mean_square_example,
    ),
    Entry(
        ("PCA", N_("component")),
        N_("finds the directions in which vectors differ most: the first component, then others at right angles to it"),
        principal_components_example,
    ),
    Entry(
        (N_("histogram"),),
        N_("a bar for each stretch of numbers, as high as many of them lie in it"),
        histogram_example,
    ),
    Entry(
        (N_("logarithm"), "log₂", "ln", N_("log-probability"), N_("log")),
        N_("the power to which 2 (log₂) or e = 2.718… (ln) must be raised to give a number"),
        logarithm_example,
    ),
)
