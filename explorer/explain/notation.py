"""How tokens, numbers and sums of them are written."""

import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from explorer.language import _, ngettext


def visible(token: str) -> str:
    """A token with its spaces, line breaks and control characters as marks."""
    shown = token.replace(" ", "·")
    if not shown.isprintable():  # as few are, of the hundreds that a picture writes
        shown = "".join(map(mark, token))
    return shown or "∅"


def quoted(token: str) -> str:
    """A token within a sentence."""
    return f"“{visible(token)}”"


def mark(character: str) -> str:
    """A visible stand-in for a character that has no glyph; the character itself if it has one."""
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


def number(value: float) -> str:
    """Three significant digits, with a true minus sign."""
    value = float(value) + 0.0  # no negative zero
    if value == 0 or not np.isfinite(value):
        text = f"{value:g}"
    else:
        text = f"{value:.2e}"
        exponent = int(text.partition("e")[2])  # of the rounded value: 9.999 is 10.0
        if -3 <= exponent < 4:
            text = f"{value:.{max(0, 2 - exponent)}f}"
    return text.replace("-", "−")


def full(value: float) -> str:
    """Six significant digits, with a true minus sign."""
    return f"{value:.6g}".replace("-", "−")


def added(value: float) -> str:
    """What a part adds, with its sign: two decimals; no sign where that leaves nothing."""
    text = f"{value:+.2f}".replace("-", "−")
    return text[1:] if float(f"{value:.2f}") == 0 else text


def listed(names: Iterable[str]) -> str:
    """As in "a, b and c", each once."""
    *first, last = list(dict.fromkeys(names)) or [""]
    return _("{first} and {last}", first=", ".join(first), last=last) if first else last


MOST_TERMS = 3  # of a sum that are written out


def factor(value: float) -> str:
    """A number as it stands in a product."""
    return f"({number(value)})" if value < 0 else number(value)


def products(a: np.ndarray, b: np.ndarray) -> str:
    """a·b of two vectors as the sum of its terms, the largest first, in brackets."""
    return summed(a * b, [f"{factor(x)}·{factor(y)}" for x, y in zip(a, b, strict=True)])


def summed(terms: np.ndarray, texts: Sequence[str] | None = None) -> str:
    """A sum of terms, each written as its text or else as a number, the largest first, in brackets."""
    order = np.argsort(-np.abs(terms), kind="stable")
    shown = [texts[i] if texts else factor(terms[i]) for i in order[:MOST_TERMS]]
    if rest := len(terms) - len(shown):
        shown.append(ngettext("{count} more term", "{count} more terms", rest))
    return f"({' + '.join(shown)})"
