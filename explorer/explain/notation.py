"""Formatting of tokens, numbers and sums."""

import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from explorer.translations import _, ngettext


def escape_token(token: str) -> str:
    """Return a token with spaces, line breaks and control characters made visible."""
    text = token.replace(" ", "·")
    if not text.isprintable():  # rare, and figures format hundreds of tokens
        text = "".join(map(escape_character, token))
    return text or "∅"


def quote_token(token: str) -> str:
    """Return a token in quotation marks, for use within a sentence."""
    return f"“{escape_token(token)}”"


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


def format_number(value: float) -> str:
    """Format with three significant digits and a true minus sign."""
    value = float(value) + 0.0  # no negative zero
    if value == 0 or not np.isfinite(value):
        text = f"{value:g}"
    else:
        text = f"{value:.2e}"
        exponent = int(text.partition("e")[2])  # of the rounded value: 9.999 is 10.0
        if -3 <= exponent < 4:
            text = f"{value:.{max(0, 2 - exponent)}f}"
    return text.replace("-", "−")


def format_six_digits(value: float) -> str:
    """Format with six significant digits and a true minus sign."""
    return f"{value:.6g}".replace("-", "−")


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
    """Format a factor of a product, in brackets if it is negative."""
    return f"({format_number(value)})" if value < 0 else format_number(value)


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
