"""What is told of a run, or of two, as lines of text."""

from collections.abc import Sequence

from explorer.explain.derivation import Derivation


def told(found: Derivation | tuple[Derivation, ...] | None) -> str:
    """As lines of text."""
    several = found if isinstance(found, tuple) else (found,)
    return "\n".join(line for one in several if one for line in one.lines())


def of_each(texts: Sequence[str]) -> str:
    """What is told of a run, or of both."""
    if len(texts) == 1 or not any(texts):
        return texts[0] if texts else ""
    return "\n".join(f"{name}: {text}" for name, text in zip("AB", texts, strict=True) if text)
