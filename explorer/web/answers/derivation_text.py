"""Derivations of one or two runs as lines of text."""

from collections.abc import Sequence

from explorer.explain.derivation import Derivation


def derivation_text(derivation: Derivation | tuple[Derivation, ...] | None) -> str:
    """Return one or several derivations as lines of text; "" for None."""
    derivations = derivation if isinstance(derivation, tuple) else (derivation,)
    return "\n".join(line for item in derivations if item for line in item.lines())


def join_run_texts(texts: Sequence[str]) -> str:
    """Join the texts of both runs, labelled A and B; a single run's text stays as it is."""
    if len(texts) == 1 or not any(texts):
        return texts[0] if texts else ""
    return "\n".join(f"{name}: {text}" for name, text in zip("AB", texts, strict=True) if text)
