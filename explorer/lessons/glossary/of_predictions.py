"""Words about predictions and how they are drawn from."""

import numpy as np

from explorer.analysis.next_token import NextToken, next_token, surprisal
from explorer.explain.captured import check
from explorer.explain.notation import number, quoted
from explorer.language import N_, _
from explorer.lessons.glossary.entry import Entry, Look


def predicted(look: Look) -> NextToken:
    settings = look.settings
    return next_token(
        look.trace,
        look.selection.query,
        settings.temperature,
        settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
    )


def best(look: Look) -> tuple[str, int]:
    """The likeliest next token, quoted, and its id."""
    token_id = int(predicted(look).top(1)[0])
    return quoted(look.trace.vocabulary[token_id]), token_id


def logit(look: Look) -> str:
    token, token_id = best(look)
    value = look.trace.logits.of(token_id, look.selection.query)
    return _(
        "The largest after {token} is that of {best}, {logit}.",
        token=quoted(look.token),
        best=token,
        logit=number(value),
    )


def probability(look: Look) -> str:
    token, token_id = best(look)
    given = predicted(look).plain[token_id]
    return _(
        "The largest that the model gives after {token} is that of {best}, {probability}.",
        token=quoted(look.token),
        best=token,
        probability=number(given),
    )


def rank(look: Look) -> str:
    actual = predicted(look).actual
    if actual is None:
        return _("After {token}, {best} has rank 1.", token=quoted(look.token), best=best(look)[0])
    return _(
        "After {token} comes {next}: its rank is {rank:,}.",
        token=quoted(look.token),
        next=quoted(look.trace.vocabulary[actual]),
        rank=predicted(look).rank(actual),
    )


def surprise(look: Look) -> str:
    if look.selection.query == 0:
        return _("The first token has none, as nothing comes before it.")
    bits = surprisal(look.trace)[look.selection.query]
    return _("{token} has {bits} bits here.", token=quoted(look.token), bits=number(bits))


def entropy(look: Look) -> str:
    return _(
        "After {token} the model’s is {plain} bits, with the settings {sampled}.",
        token=quoted(look.token),
        plain=number(predicted(look).plain_entropy),
        sampled=number(predicted(look).entropy),
    )


def even(look: Look) -> str:
    size = look.trace.config.vocab_size
    return _("An even guess among {size:,} tokens would have {bits}.", size=size, bits=number(np.log2(size)))


def perplexity(look: Look) -> str:
    if len(look.trace) < 2:
        return _("One token has none, as nothing comes before it.")
    return _("That of this run is {perplexity}.", perplexity=number(2 ** float(surprisal(look.trace)[1:].mean())))


def temperature(look: Look) -> str:
    token, token_id = best(look)
    prediction = predicted(look)
    return _(
        "At {temperature:g}, {best} goes from {plain} to {sampled}, with all other settings.",
        temperature=look.settings.temperature,
        best=token,
        plain=number(prediction.plain[token_id]),
        sampled=number(prediction.sampled[token_id]),
    )


def kept(look: Look) -> str:
    left = int((predicted(look).sampled > 0).sum())
    return _(
        "With all settings {left:,} of {size:,} tokens can be drawn after {token}.",
        left=left,
        size=look.trace.config.vocab_size,
        token=quoted(look.token),
    )


def seed(look: Look) -> str:
    return _("It is {seed} now.", seed=look.settings.seed)


def greedy(look: Look) -> str:
    return _("After {token} it would take {best}.", token=quoted(look.token), best=best(look)[0])


def off(look: Look) -> str:
    name = f"blocks.{look.selection.layer}.attn.pattern"
    found = check(look.trace, name)
    return _("{name}, worked out again, is off by {error} at most.", name=name, error=number(found.error))


ENTRIES = (
    Entry(
        (N_("logit"), N_("logits")),
        N_("the model’s score for a possible next token; softmax turns all of them into probabilities"),
        logit,
    ),
    Entry((N_("probability"), N_("probabilities")), N_("how likely something is, from 0 to 1"), probability),
    Entry((N_("rank"),), N_("1 for the likeliest token, 2 for the next, and so on"), rank),
    Entry(
        (N_("surprisal"), N_("surprisals")),
        N_("−log₂ of the probability the model gave a token before seeing it, in bits"),
        surprise,
    ),
    Entry((N_("entropy"),), N_("the surprisal to be expected from the next token, in bits"), entropy),
    Entry(
        (N_("bits"),), N_("what surprise is counted in: a coin toss has 1, and each more halves the probability"), even
    ),
    Entry(
        (N_("perplexity"),),
        N_("2 to the power of the mean surprisal: among how many equally likely tokens each was a choice"),
        perplexity,
    ),
    Entry(
        (N_("temperature"), "÷ T"),
        N_("what logits are divided by before the softmax: below 1 sharpens, above 1 flattens, 0 takes the likeliest"),
        temperature,
    ),
    Entry((N_("top-k"),), N_("only the k likeliest tokens can be drawn; 0 keeps all"), kept),
    Entry(
        (N_("top-p"), N_("nucleus")),
        N_("of those only the fewest, the likeliest, that have the probability p together; 1 keeps all"),
        kept,
    ),
    Entry((N_("min-p"),), N_("of those only tokens at least p times as likely as the likeliest; 0 keeps all"), kept),
    Entry(
        (N_("repetition penalty"),),
        N_(
            "what logits of tokens that the text has already are divided by, or multiplied by where negative; 1 leaves "
            "them"
        ),
        kept,
    ),
    Entry((N_("seed"),), N_("decides all random numbers: the same seed writes the same text"), seed),
    Entry(
        (N_("random number"), "u"),
        N_("a number from 0 to 1 by which a token is drawn: the first, likeliest first, whose sum so far is larger"),
        seed,
    ),
    Entry((N_("greedy"),), N_("always taking the likeliest token"), greedy),
    Entry((N_("beam"),), N_("keeping several texts at each step, the likeliest as wholes"), greedy),
    Entry((N_("sampling"),), N_("drawing tokens by their probabilities"), kept),
    Entry(
        (N_("off by"), N_("recomputed")),
        N_("how far a captured value lies from the same value worked out again from its inputs"),
        off,
    ),
)
