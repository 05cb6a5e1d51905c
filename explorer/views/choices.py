"""What can be chosen of a run, field by field of the selection."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.analysis.attention import PATTERNS
from explorer.analysis.heads import HEAD_SCORES
from explorer.analysis.lens import LENSES
from explorer.analysis.next_token import rank_of, ranking
from explorer.explain.notation import visible
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Choice:
    """A list to choose a field of the selection from.

    Attributes:
        field: of the selection.
        title: before the list.
        options: (value, text) pairs.
    """

    field: str
    title: str
    options: Sequence[tuple[Any, str]]


def choices(fields: Sequence[str], trace: Trace, selection: Selection) -> list[Choice]:
    """The lists of a view's controls."""
    return [Choice(field, TITLES[field], OPTIONS[field](trace, selection)) for field in fields]


def numbered(size: int) -> list[tuple[int, str]]:
    return [(i, str(i)) for i in range(size)]


def positions(trace: Trace, last: int) -> list[tuple[int, str]]:
    return [(i, f"{i}  {visible(token)}") for i, token in enumerate(trace.tokens[: last + 1])]


def next_tokens(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    """The likeliest tokens after the query by rank; those chosen and the one that follows wherever they rank.

    Of a changed run by their ranks without the changes, and with what they have become.
    """
    order = ranking(trace, selection.query)
    ranks = {*range(1, min(LISTED, len(order)) + 1), max(1, selection.target), max(1, selection.rival)}
    if selection.query + 1 < len(trace):
        ranks.add(int((order == trace.token_ids[selection.query + 1]).argmax()) + 1)

    def text(rank: int) -> str:
        now = rank if trace.baseline is None else rank_of(trace, selection.query, order[rank - 1])
        return f"{rank}.  {visible(trace.vocabulary[order[rank - 1]])}" + f" (now {now:,}.)" * (now != rank)

    return [(rank, text(rank)) for rank in sorted(ranks)]


def depths(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    return [(0, "0  embedding"), *((i + 1, f"{i + 1}  after block {i}") for i in range(trace.config.num_layers))]


def windows(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    narrower = [count for count in WINDOWS if count < len(trace)]
    return [(0, f"all {len(trace)} tokens"), *((count, f"{count} around the chosen") for count in narrower)]


WINDOWS = (16, 32, 64, 128)  # tokens
LISTED = 20  # next tokens
OF_TOKENS = ("query", "key", "target", "rival")  # what the logits suffice for
TITLES = {
    "layer": "layer",
    "head": "head",
    "query": "query",
    "key": "key",
    "tap": "value",
    "neuron": "neuron",
    "depth": "depth",
    "target": "explain",
    "rival": "against",
    "pattern": "large picture",
    "window": "in sight",
    "head_score": "score",
    "first_token": "first token",
    "lens": "colour",
}
OPTIONS: dict[str, Callable[[Trace, Selection], list[tuple[Any, str]]]] = {
    "layer": lambda trace, selection: numbered(trace.config.num_layers),
    "head": lambda trace, selection: numbered(trace.config.num_heads),
    "query": lambda trace, selection: positions(trace, len(trace) - 1),
    "key": lambda trace, selection: positions(trace, selection.query),
    "tap": lambda trace, selection: [(name, name) for name in trace.values],
    "neuron": lambda trace, selection: numbered(trace.config.d_ff),
    "depth": depths,
    "target": next_tokens,
    "pattern": lambda trace, selection: list(PATTERNS.items()),
    "window": windows,
    "head_score": lambda trace, selection: [
        (name, f"{name.replace('_', ' ')}: {s}") for name, s in HEAD_SCORES.items()
    ],
    "first_token": lambda trace, selection: [("shown", "counts"), ("hidden", "left out")],
    "lens": lambda trace, selection: list(LENSES.items()),
    "rival": lambda trace, selection: [(0, "nothing"), *next_tokens(trace, selection)],
}
