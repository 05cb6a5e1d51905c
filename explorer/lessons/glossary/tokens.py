"""Glossary entries on tokens, and the vectors that represent them."""

import numpy as np

from explorer.analysis.logit_lens import lens_inputs
from explorer.analysis.residual import residual_stream
from explorer.explain.notation import format_number, quote_token
from explorer.lessons.glossary.entry import Entry, GlossaryContext
from explorer.tracing.trace import Trace
from explorer.translations import N_, _


def count_tokens_with_prefix(context: GlossaryContext, prefix: str) -> int:
    """Count the run's tokens that begin with a prefix."""
    return sum(text.startswith(prefix) for text in context.trace.tokens)


def tokens_example(context: GlossaryContext) -> str:
    return _(
        "This run has {tokens}; the model knows {known:,} different ones.",
        tokens=len(context.trace),
        known=context.trace.config.vocab_size,
    )


def token_num_bytes(trace: Trace, position: int) -> int:
    """Return the number of bytes of a token, also where it is a part of a character."""
    token_id = trace.token_ids[position]
    token_bytes = trace.token_bytes[token_id] if trace.token_bytes else None
    return len(trace.tokens[position].encode() if token_bytes is None else token_bytes)


def token_bytes_example(context: GlossaryContext) -> str:
    size = token_num_bytes(context.trace, context.selection.query)
    return _(
        "{token} has {size} bytes, built by at most {most} merges.",
        token=quote_token(context.token),
        size=size,
        most=size - 1,
    )


def total_bytes_example(context: GlossaryContext) -> str:
    size = sum(token_num_bytes(context.trace, position) for position in range(len(context.trace)))
    return _("The {tokens} tokens here hold {size:,} bytes.", tokens=len(context.trace), size=size)


def embedding_example(context: GlossaryContext) -> str:
    length = format_number(np.linalg.norm(context.trace["embed"][context.selection.query]))
    return _("The one of {token} here has length {length}.", token=quote_token(context.token), length=length)


def vector_norm_example(context: GlossaryContext) -> str:
    lengths = np.linalg.norm(residual_stream(context.trace)[:, context.selection.query], axis=-1)
    return _(
        "That of {token} is {first} at first and {last} after the last layer.",
        token=quote_token(context.token),
        first=format_number(lengths[0]),
        last=format_number(lengths[-1]),
    )


def cosine_example(context: GlossaryContext) -> str:
    read = lens_inputs(context.trace, slice(context.selection.query, context.selection.query + 1))[:, 0].astype(float)
    first, last = (x / np.linalg.norm(x) for x in (read[0], read[-1]))
    return _(
        "What the unembedding would read at {token} before the first layer and what it reads after the last: {cosine}.",
        token=quote_token(context.token),
        cosine=format_number(float(first @ last)),
    )


def dimensions_example(context: GlossaryContext) -> str:
    config = context.trace.config
    return _("Here {model} for a token, {head} for a head.", model=config.d_model, head=config.d_head)


def unembedding_example(context: GlossaryContext) -> str:
    config = context.trace.config
    size = _("Here {rows:,} rows of {numbers} numbers.", rows=config.vocab_size, numbers=config.d_model)
    biased = _("To each product a number of the token’s own is added, its bias.") if config.unembedding_bias else ""
    return f"{size} {biased}".strip()


def context_length_example(context: GlossaryContext) -> str:
    return _("Here {most}; this run has {tokens}.", most=context.trace.config.context_length, tokens=len(context.trace))


def embedding_shape_example(context: GlossaryContext) -> str:
    config = context.trace.config
    return _("The embedding’s table is {rows:,} × {columns}.", rows=config.vocab_size, columns=config.d_model)


ENTRIES = (
    Entry(
        (N_("token"), N_("tokens")),
        N_("a piece of text, often a word with the space before it; the model reads and writes only these"),
        tokens_example,
    ),
    Entry(
        ("·",),
        N_("a space, made visible"),
        lambda look: _(
            "{count} of {tokens} tokens begin with one.",
            count=count_tokens_with_prefix(look, " "),
            tokens=len(look.trace),
        ),
    ),
    Entry(
        ("↵",),
        N_("a line break, made visible"),
        lambda look: _(
            "{count} of {tokens} tokens begin with it.",
            count=count_tokens_with_prefix(look, "\n"),
            tokens=len(look.trace),
        ),
    ),
    Entry(
        (N_("position"), N_("positions")),
        N_("the place of a token in the text, from 0"),
        lambda look: _("{token} is at {position}.", token=quote_token(look.token), position=look.selection.query),
    ),
    Entry(
        (N_("prompt"),),
        N_("the text that the model is given and goes on from"),
        lambda look: _("With what was written to it, it has {tokens} tokens.", tokens=len(look.trace)),
    ),
    Entry((N_("context"),), N_("how many tokens the model sees at once"), context_length_example),
    Entry(
        (N_("byte-pair encoding"), N_("merge"), N_("merges")),
        N_("how tokens came about: from single bytes, the pair that was most frequent was made one, again and again"),
        token_bytes_example,
    ),
    Entry(
        (N_("byte"), N_("bytes")),
        N_("one of 256 numbers: an English letter is one, other characters are two to four in a row"),
        total_bytes_example,
    ),
    Entry(
        (N_("vector"), N_("vectors")),
        N_("a list of numbers; one stands for each token, at every depth of the model"),
        dimensions_example,
    ),
    Entry((N_("dimension"), N_("dimensions")), N_("one of the numbers of a vector"), dimensions_example),
    Entry(("‖x‖₂",), N_("the length of a vector, √Σx²"), vector_norm_example),
    Entry(
        (N_("weights"),), N_("the tables of learned numbers that vectors are multiplied by"), embedding_shape_example
    ),
    Entry((N_("tokenizer"),), N_("cuts text into tokens, and joins tokens to text"), token_bytes_example),
    Entry(
        (N_("cosine"), N_("cosines")),
        N_("how alike the directions of two vectors are: 1 the same, 0 at right angles, −1 opposite"),
        cosine_example,
    ),
    Entry(
        (N_("embedding"), N_("embeddings")),
        N_("the vector that stands for a token before any layer has worked on it"),
        embedding_example,
    ),
    Entry(
        (N_("unembedding"), "lm_head"),
        N_("the table at the end: a token’s logit is the product of its row with the last vector"),
        unembedding_example,
    ),
)
