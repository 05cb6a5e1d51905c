"""Whether a prompt ends where the model has something to say."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.next_token import next_token, surprisal
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.tracing.trace import Trace

UNFAMILIAR = 0.75  # mean surprisal of a prompt, as a part of an even guess's
FEWEST_TOKENS = 4  # of a prompt that is judged by its mean
RAREST_ENDING = 0.01  # probability of a word that is offered to go on with


@dataclass(frozen=True)
class Advice:
    """What stands in the way of a telling prediction.

    Attributes:
        words: in a sentence or two.
        trim: whether to leave out the spaces at the prompt's end.
        append: what to add there.
    """

    words: str
    trim: bool = False
    append: str = ""

    def follow(self, prompt: str) -> str:
        """The prompt with a better end."""
        return (prompt.rstrip(" ") if self.trim else prompt) + self.append


def advice(trace: Trace) -> Advice | None:
    """On a prompt, from the run over it alone; None where it ends well."""
    return trailing_space(trace) or unfamiliar(trace) or dull_ending(trace)


def trailing_space(trace: Trace) -> Advice | None:
    """A space of its own where tokens have theirs joined, so that a word is hardly ever what follows it."""
    if len(trace) < 2 or not trace.tokens[-1].endswith(" "):
        return None
    joined = sum(text[:1] == " " and text[1:2].isalnum() for text in trace.vocabulary)
    if not joined:
        return None
    words = _(
        "The prompt ends in a space. {joined:,} of this model’s {tokens:,} tokens are a space and the beginning of a "
        "word in one; a space by itself had {bits} bits of surprise here. Without it those tokens can follow.",
        joined=joined,
        tokens=trace.config.vocab_size,
        bits=number(surprisal(trace)[-1]),
    )
    return Advice(words, trim=True)


def unfamiliar(trace: Trace) -> Advice | None:
    """A prompt of tokens that the model hardly expects in this order."""
    even = np.log2(trace.config.vocab_size)
    if len(trace) < FEWEST_TOKENS or (mean := float(surprisal(trace)[1:].mean())) < UNFAMILIAR * even:
        return None
    words = _(
        "The model hardly foresaw this prompt: its tokens had {mean} bits of surprise on average, where even guesses "
        "among all {tokens:,} tokens have {even}. What follows is a guess, too.",
        mean=number(mean),
        tokens=trace.config.vocab_size,
        even=number(even),
    )
    return Advice(words)


def dull_ending(trace: Trace) -> Advice | None:
    """A prompt after which the text, the line or the clause is likeliest to end."""
    prediction = next_token(trace, len(trace) - 1)
    best = int(prediction.plain.argmax())
    if not (told := ending(trace, best)):
        return None
    words = told.format(mark=quoted(trace.vocabulary[best]), probability=number(prediction.plain[best]))
    for token_id in prediction.top(64):
        text, probability = trace.vocabulary[token_id], prediction.plain[token_id]
        if text[:1] == " " and text[1:].isalpha() and probability >= RAREST_ENDING:
            go_on = _(
                "To see what the model has to tell, go on with the likeliest word, {word} ({probability}).",
                word=quoted(text),
                probability=number(probability),
            )
            return Advice(f"{words} {go_on}", append=text)
    return Advice(words)


def ending(trace: Trace, token_id: int) -> str:
    """Template of what is told of a token that ends the text, the line or the clause; "" where it goes on."""
    text = trace.vocabulary[token_id]
    if trace.token_bytes and trace.token_bytes[token_id] is None:
        return _("The likeliest next token is the end of the text (the model’s probability {probability}).")
    if text.strip(" ").startswith("\n"):
        return _("The likeliest next token is a line break (the model’s probability {probability}).")
    attached = text[:1] and not text[0].isspace() and not any(map(str.isalnum, text))
    if not attached or not text.isprintable():
        return ""
    return _("The likeliest next token is a punctuation mark, {mark} (the model’s probability {probability}).")
