"""Glossary entries on predictions and sampling."""

import numpy as np

from explorer.analysis.next_token import NextTokenDistribution, next_token_distribution, surprisal
from explorer.explain.captured import check_captured_value
from explorer.explain.notation import format_number, quote_token
from explorer.lessons.glossary.entry import Entry, GlossaryContext
from explorer.translations import N_, _


def predict_next_token(context: GlossaryContext) -> NextTokenDistribution:
    """Return the next-token distribution after the selected token, with the page's settings."""
    settings = context.settings
    return next_token_distribution(
        context.trace,
        context.selection.query,
        settings.temperature,
        settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
    )


def likeliest_token(context: GlossaryContext) -> tuple[str, int]:
    """Return the likeliest next token, quoted, and its id."""
    token_id = int(predict_next_token(context).top(1)[0])
    return quote_token(context.trace.vocabulary[token_id]), token_id


def logit_example(context: GlossaryContext) -> str:
    token, token_id = likeliest_token(context)
    value = context.trace.logits.token_logits(token_id, context.selection.query)
    return _(
        "The largest after {token} is that of {best}, {logit}.",
        token=quote_token(context.token),
        best=token,
        logit=format_number(value),
    )


def probability_example(context: GlossaryContext) -> str:
    token, token_id = likeliest_token(context)
    value = predict_next_token(context).plain[token_id]
    return _(
        "The largest that the model gives after {token} is that of {best}, {probability}.",
        token=quote_token(context.token),
        best=token,
        probability=format_number(value),
    )


def rank_example(context: GlossaryContext) -> str:
    actual = predict_next_token(context).actual
    if actual is None:
        return _(
            "After {token}, {best} has rank 1.", token=quote_token(context.token), best=likeliest_token(context)[0]
        )
    return _(
        "After {token} comes {next}: its rank is {rank:,}.",
        token=quote_token(context.token),
        next=quote_token(context.trace.vocabulary[actual]),
        rank=predict_next_token(context).rank(actual),
    )


def surprisal_example(context: GlossaryContext) -> str:
    if context.selection.query == 0:
        return _("The first token has none, as nothing comes before it.")
    bits = surprisal(context.trace)[context.selection.query]
    return _("{token} has {bits} bits here.", token=quote_token(context.token), bits=format_number(bits))


def entropy_example(context: GlossaryContext) -> str:
    return _(
        "After {token} the model’s is {plain} bits, with the settings {sampled}.",
        token=quote_token(context.token),
        plain=format_number(predict_next_token(context).plain_entropy),
        sampled=format_number(predict_next_token(context).entropy),
    )


def uniform_bits_example(context: GlossaryContext) -> str:
    size = context.trace.config.vocab_size
    return _("An even guess among {size:,} tokens would have {bits}.", size=size, bits=format_number(np.log2(size)))


def perplexity_example(context: GlossaryContext) -> str:
    if len(context.trace) < 2:
        return _("One token has none, as nothing comes before it.")
    return _(
        "That of this run is {perplexity}.", perplexity=format_number(2 ** float(surprisal(context.trace)[1:].mean()))
    )


def temperature_example(context: GlossaryContext) -> str:
    token, token_id = likeliest_token(context)
    prediction = predict_next_token(context)
    return _(
        "At {temperature:g}, {best} goes from {plain} to {sampled}, with all other settings.",
        temperature=context.settings.temperature,
        best=token,
        plain=format_number(prediction.plain[token_id]),
        sampled=format_number(prediction.sampled[token_id]),
    )


def candidate_count_example(context: GlossaryContext) -> str:
    left = int((predict_next_token(context).sampled > 0).sum())
    return _(
        "With all settings {left:,} of {size:,} tokens can be drawn after {token}.",
        left=left,
        size=context.trace.config.vocab_size,
        token=quote_token(context.token),
    )


def seed_example(context: GlossaryContext) -> str:
    return _("It is {seed} now.", seed=context.settings.seed)


def greedy_example(context: GlossaryContext) -> str:
    return _("After {token} it would take {best}.", token=quote_token(context.token), best=likeliest_token(context)[0])


def recomputation_error_example(context: GlossaryContext) -> str:
    name = f"blocks.{context.selection.layer}.attn.pattern"
    verification = check_captured_value(context.trace, name)
    return _("{name}, worked out again, is off by {error} at most.", name=name, error=format_number(verification.error))


ENTRIES = (
    Entry(
        (N_("logit"), N_("logits")),
        N_("the model’s score for a possible next token; softmax turns all of them into probabilities"),
        logit_example,
    ),
    Entry((N_("probability"), N_("probabilities")), N_("how likely something is, from 0 to 1"), probability_example),
    Entry((N_("rank"),), N_("1 for the likeliest token, 2 for the next, and so on"), rank_example),
    Entry(
        (N_("surprisal"), N_("surprisals")),
        N_("−log₂ of the probability the model gave a token before seeing it, in bits"),
        surprisal_example,
    ),
    Entry((N_("entropy"),), N_("the surprisal to be expected from the next token, in bits"), entropy_example),
    Entry(
        (N_("bits"),),
        N_("what surprise is counted in: a coin toss has 1, and each more halves the probability"),
        uniform_bits_example,
    ),
    Entry(
        (N_("perplexity"),),
        N_("2 to the power of the mean surprisal: among how many equally likely tokens each was a choice"),
        perplexity_example,
    ),
    Entry(
        (N_("temperature"), "÷ T"),
        N_("what logits are divided by before the softmax: below 1 sharpens, above 1 flattens, 0 takes the likeliest"),
        temperature_example,
    ),
    Entry((N_("top-k"),), N_("only the k likeliest tokens can be drawn; 0 keeps all"), candidate_count_example),
    Entry(
        (N_("top-p"), N_("nucleus")),
        N_("of those only the fewest, the likeliest, that have the probability p together; 1 keeps all"),
        candidate_count_example,
    ),
    Entry(
        (N_("min-p"),),
        N_("of those only tokens at least p times as likely as the likeliest; 0 keeps all"),
        candidate_count_example,
    ),
    Entry(
        (N_("repetition penalty"),),
        N_(
            "what logits of tokens that the text has already are divided by, or multiplied by where negative; 1 leaves "
            "them"
        ),
        candidate_count_example,
    ),
    Entry((N_("seed"),), N_("decides all random numbers: the same seed writes the same text"), seed_example),
    Entry(
        (N_("random number"), "u"),
        N_("a number from 0 to 1 by which a token is drawn: the first, likeliest first, whose sum so far is larger"),
        seed_example,
    ),
    Entry((N_("greedy"),), N_("always taking the likeliest token"), greedy_example),
    Entry((N_("beam"),), N_("keeping several texts at each step, the likeliest as wholes"), greedy_example),
    Entry((N_("sampling"),), N_("drawing tokens by their probabilities"), candidate_count_example),
    Entry(
        (N_("off by"), N_("recomputed")),
        N_("how far a captured value lies from the same value worked out again from its inputs"),
        recomputation_error_example,
    ),
)
