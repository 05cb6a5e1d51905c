"""Glossary entries on attribution of a prediction to components and tokens."""

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.intervention_effects import ablation_effects
from explorer.analysis.logit_lens import lens_summaries
from explorer.analysis.next_token import next_token_ranking
from explorer.explain.notation import format_number, quote_token
from explorer.lessons.glossary.entry import Entry, GlossaryContext
from explorer.translations import N_, _


def logit_lens_example(context: GlossaryContext) -> str:
    read = lens_summaries(context.trace, range(context.selection.query, context.selection.query + 1))
    return _(
        "After {token} the embedding alone would say {first}, the whole model says {last}.",
        token=quote_token(context.token),
        first=quote_token(context.trace.vocabulary[read.top[0, 0, 0]]),
        last=quote_token(context.trace.vocabulary[read.top[-1, 0, 0]]),
    )


def attribution_example(context: GlossaryContext) -> str:
    token_id = int(next_token_ranking(context.trace, context.selection.query)[0])
    contributions = direct_logit_attribution(context.trace, context.selection.query, token_id)
    return _(
        "To the logit of {token} here, {logit}, all heads add {heads} and all feed-forwards {feed_forward}.",
        token=quote_token(context.trace.vocabulary[token_id]),
        logit=format_number(contributions.logit),
        heads=format_number(contributions.heads.sum() + contributions.biases.sum()),
        feed_forward=format_number(contributions.feed_forward.sum()),
    )


def ablation_example(context: GlossaryContext) -> str:
    token_id = int(next_token_ranking(context.trace, context.selection.query)[0])
    without = ablation_effects(context.trace, context.selection.query, token_id)
    bits = without.heads[context.selection.layer, context.selection.head]
    return _(
        "Without layer {layer} head {head} the log₂ probability of {token} changes by {bits} bits.",
        layer=context.selection.layer,
        head=context.selection.head,
        token=quote_token(context.trace.vocabulary[token_id]),
        bits=format_number(bits),
    )


def gradients_example(context: GlossaryContext) -> str:
    count = (context.selection.query + 1) * context.trace.config.d_model
    return _(
        "A logit after {token} has {count:,} at the embeddings, {dimensions} for each token up to there.",
        token=quote_token(context.token),
        count=count,
        dimensions=context.trace.config.d_model,
    )


def attention_knockout_example(context: GlossaryContext) -> str:
    return _(
        "Before {token} stand {count} tokens that can be hidden.",
        token=quote_token(context.token),
        count=context.selection.query,
    )


ENTRIES = (
    Entry((N_("logit lens"),), N_("what the model would say if it stopped at some depth"), logit_lens_example),
    Entry(
        (N_("direct logit attribution"), N_("attribution")),
        N_("a logit taken apart into what each part of the model added to it"),
        attribution_example,
    ),
    Entry(
        (N_("gradient"), N_("gradients")),
        N_("how fast a number grows with each of the numbers that it is worked out from"),
        gradients_example,
    ),
    Entry(
        (N_("knock-out"),),
        N_("hiding a token from all later ones, in all heads, to see what becomes of a prediction"),
        attention_knockout_example,
    ),
    Entry(
        (N_("ablation"), N_("ablated"), N_("ablate")),
        N_("running the model without a part, to see what becomes of the prediction"),
        ablation_example,
    ),
)
