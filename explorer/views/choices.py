"""What can be chosen of a run, field by field of the selection."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.analysis.attention import PATTERNS
from explorer.analysis.heads import HEAD_SCORES, SCORE_NAMES
from explorer.analysis.lens import LENSES
from explorer.analysis.next_token import rank_of, ranking
from explorer.analysis.steering import chosen_direction, lists_of
from explorer.explain.notation import visible
from explorer.explain.place import as_text
from explorer.language import N_, _, look_up
from explorer.state.interventions import Recipe
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.style import shortened


@dataclass(frozen=True)
class Choice:
    """A list to choose a field of the selection from.

    Attributes:
        field: of the selection.
        title: before the list.
        options: (value, text) pairs.
        is_free: whether any other text can be written, too.
    """

    field: str
    title: str
    options: Sequence[tuple[Any, str]]
    is_free: bool = False


def choices(fields: Sequence[str], trace: Trace, selection: Selection) -> list[Choice]:
    """The lists of a view's controls."""
    return [Choice(field, look_up(TITLES[field]), OPTIONS[field](trace, selection), field in FREE) for field in fields]


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


def likely(trace: Trace) -> list[tuple[str, str]]:
    """The likeliest tokens at the end, by their texts; "" first, for what is proposed."""
    found = [trace.vocabulary[token_id] for token_id in ranking(trace, len(trace) - 1)[:LISTED]]
    return [("", _("as proposed")), *((visible(text), shortened(text)) for text in found)]


def depths(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    blocks = range(trace.config.num_layers)
    return [(0, _("0  embedding")), *((i + 1, _("{depth}  after block {block}", depth=i + 1, block=i)) for i in blocks)]


def windows(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    narrower = [count for count in WINDOWS if count < len(trace)]
    around = ((count, _("{count} around the chosen", count=count)) for count in narrower)
    return [(0, _("all {count} tokens", count=len(trace))), *around]


def directions(trace: Trace, selection: Selection) -> list[tuple[str, str]]:
    """Of lists of prompts, and of what is chosen; the one that is looked at, whichever it is."""
    order, written = ranking(trace, selection.query), as_text(trace)
    token_id, rival_id = (int(order[max(1, rank) - 1]) for rank in (selection.target, selection.rival or 2))
    layer = selection.layer
    own = [
        Recipe("unembed", (token_id,)),
        *([Recipe("difference", (token_id, rival_id))] if token_id != rival_id else []),
        Recipe("neuron", (layer, selection.neuron)),
        Recipe("ov", (layer, selection.head, 0)),
    ]
    options = {text: look_up(lists.name) for text, lists in lists_of(trace).items()}
    options |= {str(recipe): recipe.words(written) for recipe in own}
    chosen = chosen_direction(trace, selection.direction)
    options.setdefault(str(chosen), chosen.words(written))
    seen = {str(chosen): selection.direction}  # the list shows the option that the selection has, whatever it has
    return [(seen.get(text, text), words) for text, words in options.items()]


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
    "head_score": N_("head score"),
    "first_token": N_("first token"),
    "direction": N_("direction"),
    "lens": N_("colour"),
    "clean_run": N_("clean"),
    "answer": N_("answer"),
    "wrong": N_("wrong answer"),
    "metric": N_("measure"),
    "patch_position": N_("by position"),
    "patch_head": N_("by head"),
    "patch_direction": N_("estimates and paths"),
    "receiver": N_("receiver"),
}
FREE = ("answer", "wrong")
METRICS = {
    "logit_difference": N_("logit difference"),
    "log_probability": N_("log-probability"),
    "probability": N_("probability (hides negative effects)"),
}
DIRECTIONS = {"denoise": N_("denoising: clean into corrupted"), "noise": N_("noising: corrupted into clean")}
BY_POSITION = {
    "resid_pre": N_("residual stream"),
    "attn.out": N_("attention’s output"),
    "ffn.out": N_("feed-forward’s output"),
}
BY_HEAD = {
    "attn.z": N_("z, what it fetches"),
    "attn.q": N_("q, queries"),
    "attn.k": N_("k, keys"),
    "attn.v": N_("v, values"),
    "attn.pattern": N_("attention pattern"),
}
RECEIVERS = {
    "logits": N_("logits"),
    "q": N_("q of the chosen head"),
    "k": N_("k of the chosen head"),
    "v": N_("v of the chosen head"),
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
    "direction": directions,
    "clean_run": lambda trace, selection: [("b", _("B (A is corrupted)")), ("a", _("A (B is corrupted)"))],
    "answer": lambda trace, selection: likely(trace),
    "wrong": lambda trace, selection: likely(trace),
    "metric": lambda trace, selection: looked_up(METRICS),
    "patch_direction": lambda trace, selection: looked_up(DIRECTIONS),
    "patch_position": lambda trace, selection: looked_up(BY_POSITION),
    "patch_head": lambda trace, selection: looked_up(BY_HEAD),
    "receiver": lambda trace, selection: looked_up(RECEIVERS),
    "rival": lambda trace, selection: [(0, _("nothing")), *next_tokens(trace, selection)],
}
