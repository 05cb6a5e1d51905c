"""What can be chosen of a run, field by field of the selection."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.analysis.attention import PATTERNS
from explorer.analysis.heads import HEAD_SCORES, SCORE_NAMES
from explorer.analysis.lens import LENSES
from explorer.analysis.next_token import rank_of, ranking
from explorer.explain.notation import visible
from explorer.language import N_, _, look_up
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
    return [Choice(field, look_up(TITLES[field]), OPTIONS[field](trace, selection)) for field in fields]


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
        token = visible(trace.vocabulary[order[rank - 1]])
        now = rank if trace.baseline is None else rank_of(trace, selection.query, order[rank - 1])
        if now == rank:
            return f"{rank}.  {token}"
        return _("{rank}.  {token} (now {now:,}.)", rank=rank, token=token, now=now)

    return [(rank, text(rank)) for rank in sorted(ranks)]


def depths(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    blocks = range(trace.config.num_layers)
    return [(0, _("0  embedding")), *((i + 1, _("{depth}  after block {block}", depth=i + 1, block=i)) for i in blocks)]


def windows(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    narrower = [count for count in WINDOWS if count < len(trace)]
    around = ((count, _("{count} around the chosen", count=count)) for count in narrower)
    return [(0, _("all {count} tokens", count=len(trace))), *around]


def looked_up(table: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, look_up(words)) for name, words in table.items()]


def head_scores() -> list[tuple[str, str]]:
    return [(name, f"{look_up(SCORE_NAMES[name])}: {does}") for name, does in looked_up(HEAD_SCORES)]


WINDOWS = (16, 32, 64, 128)  # tokens
LISTED = 20  # next tokens
OF_TOKENS = ("query", "key", "target", "rival")  # what the logits suffice for
TITLES = {
    "layer": N_("layer"),
    "head": N_("head"),
    "query": N_("query"),
    "key": N_("key"),
    "tap": N_("value"),
    "neuron": N_("neuron"),
    "depth": N_("depth"),
    "target": N_("explain"),
    "rival": N_("against"),
    "pattern": N_("large picture"),
    "window": N_("in sight"),
    "head_score": N_("score"),
    "first_token": N_("first token"),
    "lens": N_("colour"),
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
    "pattern": lambda trace, selection: looked_up(PATTERNS),
    "window": windows,
    "head_score": lambda trace, selection: head_scores(),
    "first_token": lambda trace, selection: [("shown", _("counts")), ("hidden", _("left out"))],
    "lens": lambda trace, selection: looked_up(LENSES),
    "rival": lambda trace, selection: [(0, _("nothing")), *next_tokens(trace, selection)],
}
