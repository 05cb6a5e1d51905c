"""Numbers, tokens and elements of captured values as text."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from explorer.interventions import Text
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate

END_OF_TEXT_TOKENS = "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]"


def escape_token(token: str) -> str:
    """Return a token with spaces, line breaks and control characters made visible, and an end of text as a sign."""
    return _("■ end of text") if token in END_OF_TEXT_TOKENS else escape_text(token)


def escape_text(token: str) -> str:
    """Return a text with spaces, line breaks and control characters made visible."""
    text = token.replace(" ", "·")
    if not text.isprintable():  # rare, and figures format hundreds of tokens
        text = "".join(map(escape_character, token))
    return text or "∅"


def quote_token(token: str) -> str:
    """Return a token in quotation marks, for use within a sentence."""
    return f"“{escape_token(token)}”"


def quote_word(token: str) -> str:
    """Return a token in quotation marks as a word: without the space before it, a line break with its name."""
    if token == "\n":
        return _("“↵ new line”")
    return quote_token(token[1:] if token.startswith(" ") and token.strip() else token)


ORDINALS = (
    N_("the first {word}"),
    N_("the second {word}"),
    N_("the third {word}"),
    N_("the fourth {word}"),
    N_("the fifth {word}"),
)


def quote_word_in_text(tokens: Sequence[str], position: int) -> str:
    """Return the token at a position as a quoted word, and which of them, in any case, if the text repeats it."""
    word, words = quote_word(tokens[position]), [quote_word(token).lower() for token in tokens]
    index = words[:position].count(words[position])
    if words.count(words[position]) == 1:
        return word
    if index < len(ORDINALS):
        return translate(ORDINALS[index], word=word)
    return _("{word} number {number}", word=word, number=index + 1)


def escape_token_in_text(tokens: Sequence[str], position: int) -> str:
    """Return the token at a position with its spaces visible, and with its position if the text repeats it."""
    return escape_token(tokens[position]) + repeated_position(tokens, position)


def quote_token_in_text(tokens: Sequence[str], position: int) -> str:
    """Return the token at a position in quotation marks, with its position if the text repeats it."""
    return quote_token(tokens[position]) + repeated_position(tokens, position)


def repeated_position(tokens: Sequence[str], position: int) -> str:
    """Return what to write after the token at a position: the position, if the text repeats the token, or ""."""
    return f" ({position})" if list(tokens).count(tokens[position]) > 1 else ""


def escape_character(character: str) -> str:
    """Return a visible substitute for a character without a glyph; other characters unchanged."""
    if character in " \n\t":
        return {" ": "·", "\n": "↵", "\t": "→"}[character]
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"):
        return f"⟨{code:04X}⟩"
    return character


def format_number(value: float, digits: int = 3) -> str:
    """Format with some significant digits and a true minus sign."""
    value = float(value) + 0.0  # no negative zero
    if value == 0 or not np.isfinite(value):
        text = f"{value:g}"
    else:
        text = f"{value:.{digits - 1}e}"
        exponent = int(text.partition("e")[2])  # of the rounded value: 9.999 is 10.0
        if -4 <= exponent < 4:
            text = f"{value:.{max(0, digits - 1 - exponent)}f}"
    return text.replace("-", "−")


def format_percent(share: float) -> str:
    """Format a share as in "84%", "3.1%", "5.0%", "0.020%", "over 99%" or "less than 0.01%"."""
    if share >= 0.995 and share < 1:
        return _("over 99%")
    if share >= 0.1 or share == 0:
        return f"{share:.0%}"
    return f"{share * 100:#.2g}".rstrip(".") + "%" if share >= 0.0001 else _("less than 0.01%")


def format_six_digits(value: float) -> str:
    """Format with six significant digits and a true minus sign, so that a printed calculation can be checked."""
    text = f"{float(value) + 0.0:.6g}"  # no negative zero
    return text.replace("-", "−").replace("inf", "∞")


MAX_CELL_CHARS = 6


def format_cell_number(value: float) -> str:
    """Format with three significant digits, or with fewer where three take more than `MAX_CELL_CHARS`."""
    size = abs(float(value))
    if not np.isfinite(size) or size >= 999.5:
        text = f"{value:.0f}".replace("inf", "∞")
    elif 0 < size < 0.0001:
        text = f"{value:.0e}".replace("e-0", "e-")
    elif 0 < size < 0.001:
        text = f"{value:.1g}"
    else:
        three_digits, two_digits = (f"{float(value) + 0.0:.{digits}g}" for digits in (3, 2))
        text = three_digits if len(three_digits) <= MAX_CELL_CHARS else two_digits
    return text.replace("-", "−")


def bracket_negative(number: str) -> str:
    """Return a formatted number, in brackets if it is negative."""
    return f"({number})" if number.startswith("−") else number


def format_signed(value: float) -> str:
    """Format a value with three significant digits and its sign; "–" for NaN."""
    return "–" if np.isnan(value) else f"{'+' if value > 0 else ''}{format_number(value)}"


def format_contribution(value: float) -> str:
    """Format a contribution with two decimals and its sign; no sign if it rounds to 0."""
    text = f"{value:+.2f}".replace("-", "−")
    return text[1:] if float(f"{value:.2f}") == 0 else text


def join_names(names: Iterable[str]) -> str:
    """Join names as in "a, b and c", without duplicates."""
    *first, last = list(dict.fromkeys(names)) or [""]
    return _("{first} and {last}", first=", ".join(first), last=last) if first else last


MAX_TERMS = 3  # of a sum that are written out


def format_factor(value: float) -> str:
    """Format a factor of a product, or what is subtracted, with six digits; in brackets if it is negative."""
    return bracket_negative(format_six_digits(value))


def format_dot_product(a: np.ndarray, b: np.ndarray) -> str:
    """Format a·b of two vectors as the sum of its terms, largest first, in brackets."""
    return format_sum(a * b, [f"{format_factor(x)}·{format_factor(y)}" for x, y in zip(a, b, strict=True)])


def format_sum(terms: np.ndarray, texts: Sequence[str] | None = None) -> str:
    """Format a sum of terms, each as its text or else as a number, largest first, in brackets."""
    order = np.argsort(-np.abs(terms), kind="stable")
    term_texts = [texts[i] if texts else format_factor(terms[i]) for i in order[:MAX_TERMS]]
    if rest := len(terms) - len(term_texts):
        term_texts.append(ngettext("{count} more term", "{count} more terms", rest))
    return f"({' + '.join(term_texts)})"


# last axis -> owner of the vector ("" if it belongs to no layer) -> label of an element
ELEMENTS = {
    "neuron": {"layer": N_("layer {layer}, {token}, neuron {last}")},
    "pair": {"": N_("{token}, pair {last}")},
    "dimension": {
        "kv_head": N_("layer {layer} kv head {head}, {token}, dimension {last}"),
        "head": N_("layer {layer} head {head}, {token}, dimension {last}"),
        "layer": N_("layer {layer}, {token}, dimension {last}"),
        "": N_("{token}, dimension {last}"),
    },
}

MAX_TEXT_CHARACTERS = 40  # characters of a text within a sentence


def token_formatter(trace: Trace) -> Text:
    """Return a function that formats token ids of a run's model as a quoted text."""

    def format_tokens(token_ids: tuple[int, ...]) -> str:
        text = trace.join_tokens(token_ids)
        return quote_token(text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[: MAX_TEXT_CHARACTERS - 1]}…")

    return format_tokens


def describe_element(trace: Trace, name: str, index: tuple[int, ...]) -> str:
    """Describe an element of a captured value, as in "layer 2 head 1, query “·fox” (7) → key “·a” (2)"."""
    in_block = re.match(r"blocks\.(\d+)\.", name)
    layer = int(in_block[1]) if in_block else None
    *head, token, last = index
    if name.endswith((".scores", ".pattern")):
        return format_attention_cell(trace, layer, *index)
    if name == "logits":
        return _("after {token}, of {of}", token=format_token_position(trace, token), of=format_token_id(trace, last))
    axis = "pair" if name.endswith("rope.angles") else "dimension"
    if name.endswith((".gate_pre", ".gate", ".up", ".hidden")):
        axis = "neuron"
    owner = "layer" if in_block else ""
    if head:
        owner = "kv_head" if len(trace[name]) < trace.config.num_heads else "head"
    return translate(
        ELEMENTS[axis][owner],
        layer=layer,
        head=head[0] if head else None,
        token=format_token_position(trace, token),
        last=last,
    )


def format_token_position(trace: Trace, position: int) -> str:
    """Format a token and its position, as in "“·fox” (7)"."""
    return f"{quote_token(trace.tokens[position])} ({position})"


def format_token_id(trace: Trace, token_id: int) -> str:
    """Format a token of the vocabulary, as in "“·fox” (id 417)"."""
    return _("{token} (id {token_id})", token=quote_token(trace.vocabulary[token_id]), token_id=token_id)


def format_query_key(trace: Trace, query: int, key: int) -> str:
    """Format a query and a key with their tokens."""
    return _(
        "query {query} → key {key}", query=format_token_position(trace, query), key=format_token_position(trace, key)
    )


def format_attention_cell(trace: Trace, layer: int, head: int, query: int, key: int) -> str:
    """Describe a cell of a pattern, as in "layer 2 head 1, query “·fox” (7) → key “·a” (2)"."""
    return _(
        "layer {layer} head {head}, query {query} → key {key}",
        layer=layer,
        head=head,
        query=format_token_position(trace, query),
        key=format_token_position(trace, key),
    )
