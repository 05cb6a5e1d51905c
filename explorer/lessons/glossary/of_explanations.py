"""How a prediction is traced to parts of the model, and to tokens."""

from explorer.analysis.ablation import ablation
from explorer.analysis.attribution import attribution
from explorer.analysis.lens import readings
from explorer.analysis.next_token import likeliest
from explorer.explain.notation import number, quoted
from explorer.language import N_, _
from explorer.lessons.glossary.entry import Entry, Look


def lens(look: Look) -> str:
    read = readings(look.trace, range(look.selection.query, look.selection.query + 1))
    return _(
        "After {token} the embedding alone would say {first}, the whole model says {last}.",
        token=quoted(look.token),
        first=quoted(look.trace.vocabulary[read.top[0, 0, 0]]),
        last=quoted(look.trace.vocabulary[read.top[-1, 0, 0]]),
    )


def added(look: Look) -> str:
    token_id = int(likeliest(look.trace, look.selection.query)[0])
    taken = attribution(look.trace, look.selection.query, token_id)
    return _(
        "To the logit of {token} here, {logit}, all heads add {heads} and all feed-forwards {feed_forward}.",
        token=quoted(look.trace.vocabulary[token_id]),
        logit=number(taken.logit),
        heads=number(taken.heads.sum() + taken.biases.sum()),
        feed_forward=number(taken.feed_forward.sum()),
    )


def silenced(look: Look) -> str:
    token_id = int(likeliest(look.trace, look.selection.query)[0])
    without = ablation(look.trace, look.selection.query, token_id)
    bits = without.heads[look.selection.layer, look.selection.head]
    return _(
        "Without layer {layer} head {head} the log₂ probability of {token} changes by {bits} bits.",
        layer=look.selection.layer,
        head=look.selection.head,
        token=quoted(look.trace.vocabulary[token_id]),
        bits=number(bits),
    )


def gradients(look: Look) -> str:
    count = (look.selection.query + 1) * look.trace.config.d_model
    return _(
        "A logit after {token} has {count:,} at the embeddings, {dimensions} for each token up to there.",
        token=quoted(look.token),
        count=count,
        dimensions=look.trace.config.d_model,
    )


def hidden(look: Look) -> str:
    return _(
        "Before {token} stand {count} tokens that can be hidden.", token=quoted(look.token), count=look.selection.query
    )


ENTRIES = (
    Entry((N_("logit lens"),), N_("what the model would say if it stopped at some depth"), lens),
    Entry(
        (N_("direct logit attribution"), N_("attribution")),
        N_("a logit taken apart into what each part of the model added to it"),
        added,
    ),
    Entry(
        (N_("gradient"), N_("gradients")),
        N_("how fast a number grows with each of the numbers that it is worked out from"),
        gradients,
    ),
    Entry(
        (N_("knock-out"),),
        N_("hiding a token from all later ones, in all heads, to see what becomes of a prediction"),
        hidden,
    ),
    Entry(
        (N_("ablation"), N_("silenced"), N_("silence")),
        N_("running the model without a part, to see what becomes of the prediction"),
        silenced,
    ),
)
