"""Advice on prompts whose end makes the prediction uninformative."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.next_token import next_token_distribution, surprisal
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _

UNFAMILIAR_FRACTION = 0.75  # mean surprisal of a prompt, as a part of an even guess's
MIN_TOKENS = 4  # of a prompt that is judged by its mean
MIN_ENDING_PROBABILITY = 0.01  # probability of a word that is offered to go on with


@dataclass(frozen=True)
class PromptAdvice:
    """Advice on a prompt.

    Attributes:
        text: a sentence or two.
        trim: whether to remove the spaces at the prompt's end.
        append: a text to add there.
    """

    text: str
    trim: bool = False
    append: str = ""

    def follow(self, prompt: str) -> str:
        """Return the prompt with the advice applied."""
        return (prompt.rstrip(" ") if self.trim else prompt) + self.append


def prompt_advice(trace: Trace) -> PromptAdvice | None:
    """Return the first advice that applies to the prompt of a trace; None for none."""
    return trailing_space_advice(trace) or unfamiliar_prompt_advice(trace) or likely_end_advice(trace)


def trailing_space_advice(trace: Trace) -> PromptAdvice | None:
    """Return advice on a space at the end, if tokens begin with their space, so that words hardly follow one."""
    if len(trace) < 2 or not trace.tokens[-1].endswith(" "):
        return None
    joined = sum(text[:1] == " " and text[1:2].isalnum() for text in trace.vocabulary)
    if not joined:
        return None
    message = _(
        "The prompt ends in a space. {joined:,} of this model’s {tokens:,} tokens are a space and the beginning of a "
        "word in one; a space by itself had {bits} bits of surprise here. Without it those tokens can follow.",
        joined=joined,
        tokens=trace.config.vocab_size,
        bits=format_number(surprisal(trace)[-1]),
    )
    return PromptAdvice(message, trim=True)


def unfamiliar_prompt_advice(trace: Trace) -> PromptAdvice | None:
    """Return advice on a prompt with a high mean surprisal."""
    uniform_bits = np.log2(trace.config.vocab_size)
    if len(trace) < MIN_TOKENS or (mean := float(surprisal(trace)[1:].mean())) < UNFAMILIAR_FRACTION * uniform_bits:
        return None
    message = _(
        "The model hardly foresaw this prompt: its tokens had {mean} bits of surprise on average, where even guesses "
        "among all {tokens:,} tokens have {even}. What follows is a guess, too.",
        mean=format_number(mean),
        tokens=trace.config.vocab_size,
        even=format_number(uniform_bits),
    )
    return PromptAdvice(message)


def likely_end_advice(trace: Trace) -> PromptAdvice | None:
    """Return advice on a prompt after which the text, the line or the clause is likeliest to end."""
    prediction = next_token_distribution(trace, len(trace) - 1)
    best = int(prediction.plain.argmax())
    if not (template := end_token_template(trace, best)):
        return None
    message = template.format(
        mark=quote_token(trace.vocabulary[best]), probability=format_number(prediction.plain[best])
    )
    for token_id in prediction.top(64):
        text, probability = trace.vocabulary[token_id], prediction.plain[token_id]
        if text[:1] == " " and text[1:].isalpha() and probability >= MIN_ENDING_PROBABILITY:
            suggestion = _(
                "To see what the model has to tell, go on with the likeliest word, {word} ({probability}).",
                word=quote_token(text),
                probability=format_number(probability),
            )
            return PromptAdvice(f"{message} {suggestion}", append=text)
    return PromptAdvice(message)


def end_token_template(trace: Trace, token_id: int) -> str:
    """Return a text template for a token that ends the text, the line or the clause; "" for other tokens."""
    text = trace.vocabulary[token_id]
    if trace.token_bytes and trace.token_bytes[token_id] is None:
        return _("The likeliest next token is the end of the text (the model’s probability {probability}).")
    if text.strip(" ").startswith("\n"):
        return _("The likeliest next token is a line break (the model’s probability {probability}).")
    attached = text[:1] and not text[0].isspace() and not any(map(str.isalnum, text))
    if not attached or not text.isprintable():
        return ""
    return _("The likeliest next token is a punctuation mark, {mark} (the model’s probability {probability}).")
