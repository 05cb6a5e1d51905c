"""Words about the text and the vectors that stand for it."""

import numpy as np

from explorer.analysis.lens import streams
from explorer.analysis.residual import stream
from explorer.explain.notation import number, quoted
from explorer.language import N_, _
from explorer.lessons.glossary.entry import Entry, Look
from explorer.tracing.trace import Trace


def beginning_with(look: Look, mark: str) -> int:
    return sum(text.startswith(mark) for text in look.trace.tokens)


def tokens(look: Look) -> str:
    return _(
        "This run has {tokens}; the model knows {known:,} different ones.",
        tokens=len(look.trace),
        known=look.trace.config.vocab_size,
    )


def size_of(trace: Trace, position: int) -> int:
    """Bytes of a token. One that is a part of a character is written as \\x and two digits a byte (`Tokenizer`)."""
    token_id = trace.token_ids[position]
    known = trace.token_bytes[token_id] if trace.token_bytes else None
    return len(trace.tokens[position].encode() if known is None else known)


def bytes_of(look: Look) -> str:
    size = size_of(look.trace, look.selection.query)
    return _(
        "{token} has {size} bytes, built by at most {most} merges.", token=quoted(look.token), size=size, most=size - 1
    )


def several_bytes(look: Look) -> str:
    size = sum(size_of(look.trace, position) for position in range(len(look.trace)))
    return _("The {tokens} tokens here hold {size:,} bytes.", tokens=len(look.trace), size=size)


def embedding(look: Look) -> str:
    length = number(np.linalg.norm(look.trace["embed"][look.selection.query]))
    return _("The one of {token} here has length {length}.", token=quoted(look.token), length=length)


def length(look: Look) -> str:
    lengths = np.linalg.norm(stream(look.trace)[:, look.selection.query], axis=-1)
    return _(
        "That of {token} is {first} at first and {last} after the last layer.",
        token=quoted(look.token),
        first=number(lengths[0]),
        last=number(lengths[-1]),
    )


def cosine(look: Look) -> str:
    read = streams(look.trace, slice(look.selection.query, look.selection.query + 1))[:, 0].astype(float)
    first, last = (x / np.linalg.norm(x) for x in (read[0], read[-1]))
    return _(
        "What the unembedding would read at {token} before the first layer and what it reads after the last: {cosine}.",
        token=quoted(look.token),
        cosine=number(float(first @ last)),
    )


def dimensions(look: Look) -> str:
    config = look.trace.config
    return _("Here {model} for a token, {head} for a head.", model=config.d_model, head=config.d_head)


def unembedding(look: Look) -> str:
    config = look.trace.config
    size = _("Here {rows:,} rows of {numbers} numbers.", rows=config.vocab_size, numbers=config.d_model)
    biased = _("To each product a number of the token’s own is added, its bias.") if config.unembedding_bias else ""
    return f"{size} {biased}".strip()


def context(look: Look) -> str:
    return _("Here {most}; this run has {tokens}.", most=look.trace.config.context_length, tokens=len(look.trace))


def weights(look: Look) -> str:
    config = look.trace.config
    return _("The embedding’s table is {rows:,} × {columns}.", rows=config.vocab_size, columns=config.d_model)


ENTRIES = (
    Entry(
        (N_("token"), N_("tokens")),
        N_("a piece of text, often a word with the space before it; the model reads and writes only these"),
        tokens,
    ),
    Entry(
        ("·",),
        N_("a space, made visible"),
        lambda look: _(
            "{count} of {tokens} tokens begin with one.", count=beginning_with(look, " "), tokens=len(look.trace)
        ),
    ),
    Entry(
        ("↵",),
        N_("a line break, made visible"),
        lambda look: _(
            "{count} of {tokens} tokens begin with it.", count=beginning_with(look, "\n"), tokens=len(look.trace)
        ),
    ),
    Entry(
        (N_("position"), N_("positions")),
        N_("the place of a token in the text, from 0"),
        lambda look: _("{token} is at {position}.", token=quoted(look.token), position=look.selection.query),
    ),
    Entry(
        (N_("prompt"),),
        N_("the text that the model is given and goes on from"),
        lambda look: _("With what was written to it, it has {tokens} tokens.", tokens=len(look.trace)),
    ),
    Entry((N_("context"),), N_("how many tokens the model sees at once"), context),
    Entry(
        (N_("byte-pair encoding"), N_("merge"), N_("merges")),
        N_("how tokens came about: from single bytes, the pair that was most frequent was made one, again and again"),
        bytes_of,
    ),
    Entry(
        (N_("byte"), N_("bytes")),
        N_("one of 256 numbers: an English letter is one, other characters are two to four in a row"),
        several_bytes,
    ),
    Entry(
        (N_("vector"), N_("vectors")),
        N_("a list of numbers; one stands for each token, at every depth of the model"),
        dimensions,
    ),
    Entry((N_("dimension"), N_("dimensions")), N_("one of the numbers of a vector"), dimensions),
    Entry(("‖x‖₂",), N_("the length of a vector, √Σx²"), length),
    Entry((N_("weights"),), N_("the tables of learned numbers that vectors are multiplied by"), weights),
    Entry((N_("tokenizer"),), N_("cuts text into tokens, and joins tokens to text"), bytes_of),
    Entry(
        (N_("cosine"), N_("cosines")),
        N_("how alike the directions of two vectors are: 1 the same, 0 at right angles, −1 opposite"),
        cosine,
    ),
    Entry(
        (N_("embedding"), N_("embeddings")),
        N_("the vector that stands for a token before any layer has worked on it"),
        embedding,
    ),
    Entry(
        (N_("unembedding"), "lm_head"),
        N_("the table at the end: a token’s logit is the product of its row with the last vector"),
        unembedding,
    ),
)
