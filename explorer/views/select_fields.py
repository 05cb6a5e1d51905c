"""The lists from which a view's fields of the selection are chosen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.analysis.attention import PATTERNS
from explorer.analysis.heads import HEAD_SCORES, SCORE_NAMES
from explorer.analysis.logit_lens import LENSES
from explorer.analysis.next_token import ranking, token_rank
from explorer.analysis.steering import chosen_direction, prompt_lists_by_direction
from explorer.explain.labels import token_formatter
from explorer.explain.notation import escape_token
from explorer.state.interventions import DirectionSpec
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.style import shorten_token


@dataclass(frozen=True)
class SelectField:
    """A list from which a field of the selection is chosen.

    Attributes:
        field: of the selection.
        title: before the list.
        options: (value, text) pairs.
        is_free: whether any other text is accepted, too.
    """

    field: str
    title: str
    options: Sequence[tuple[Any, str]]
    is_free: bool = False


def select_fields(fields: Sequence[str], trace: Trace, selection: Selection) -> list[SelectField]:
    """Return the lists of a view's controls."""
    return [
        SelectField(field, translate(TITLES[field]), OPTIONS[field](trace, selection), field in FREE_TEXT_FIELDS)
        for field in fields
    ]


def numbered_options(size: int) -> list[tuple[int, str]]:
    return [(i, str(i)) for i in range(size)]


def position_options(trace: Trace, last: int) -> list[tuple[int, str]]:
    return [(i, f"{i}  {escape_token(token)}") for i, token in enumerate(trace.tokens[: last + 1])]


def next_token_options(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    """Return the most probable tokens after the query by rank; always the chosen ones and the actual next token.

    For a run with interventions: ranks in the run without them, and the current ranks.
    """
    order = ranking(trace, selection.query)
    ranks = {*range(1, min(NUM_LISTED, len(order)) + 1), max(1, selection.target), max(1, selection.rival)}
    if selection.query + 1 < len(trace):
        ranks.add(int((order == trace.token_ids[selection.query + 1]).argmax()) + 1)

    def option_text(rank: int) -> str:
        token = escape_token(trace.vocabulary[order[rank - 1]])
        current_rank = rank if trace.baseline is None else token_rank(trace, selection.query, order[rank - 1])
        if current_rank == rank:
            return f"{rank}.  {token}"
        return _("{rank}.  {token} (now {now:,}.)", rank=rank, token=token, now=current_rank)

    return [(rank, option_text(rank)) for rank in sorted(ranks)]


def likely_token_options(trace: Trace) -> list[tuple[str, str]]:
    """Return the most probable tokens at the end, by their texts; first "" for the proposed token."""
    tokens = [trace.vocabulary[token_id] for token_id in ranking(trace, len(trace) - 1)[:NUM_LISTED]]
    return [("", _("as proposed")), *((escape_token(text), shorten_token(text)) for text in tokens)]


def depth_options(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    blocks = range(trace.config.num_layers)
    return [(0, _("0  embedding")), *((i + 1, _("{depth}  after block {block}", depth=i + 1, block=i)) for i in blocks)]


def window_options(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    narrower = [count for count in WINDOWS if count < len(trace)]
    options = ((count, _("{count} around the chosen", count=count)) for count in narrower)
    return [(0, _("all {count} tokens", count=len(trace))), *options]


def direction_options(trace: Trace, selection: Selection) -> list[tuple[str, str]]:
    """Return the directions of prompt lists and of chosen components; always the chosen direction."""
    order, format_token = ranking(trace, selection.query), token_formatter(trace)
    token_id, contrast_id = (int(order[max(1, rank) - 1]) for rank in (selection.target, selection.rival or 2))
    layer = selection.layer
    direction_specs = [
        DirectionSpec("unembed", (token_id,)),
        *([DirectionSpec("difference", (token_id, contrast_id))] if token_id != contrast_id else []),
        DirectionSpec("neuron", (layer, selection.neuron)),
        DirectionSpec("ov", (layer, selection.head, 0)),
    ]
    options = {text: translate(lists.name) for text, lists in prompt_lists_by_direction(trace).items()}
    options |= {str(direction_spec): direction_spec.describe(format_token) for direction_spec in direction_specs}
    chosen_spec = chosen_direction(trace, selection.direction)
    options.setdefault(str(chosen_spec), chosen_spec.describe(format_token))
    value_by_text = {str(chosen_spec): selection.direction}  # the option must equal the selection's own text
    return [(value_by_text.get(text, text), description) for text, description in options.items()]


def translated_options(table: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, translate(text)) for name, text in table.items()]


def head_scores() -> list[tuple[str, str]]:
    return [
        (name, f"{translate(SCORE_NAMES[name])}: {description}")
        for name, description in translated_options(HEAD_SCORES)
    ]


WINDOWS = (16, 32, 64, 128)  # tokens
NUM_LISTED = 20  # next tokens
TOKEN_FIELDS = ("query", "key", "target", "rival")  # fields that need no value but the logits
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
FREE_TEXT_FIELDS = ("answer", "wrong")
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
    "layer": lambda trace, selection: numbered_options(trace.config.num_layers),
    "head": lambda trace, selection: numbered_options(trace.config.num_heads),
    "query": lambda trace, selection: position_options(trace, len(trace) - 1),
    "key": lambda trace, selection: position_options(trace, selection.query),
    "tap": lambda trace, selection: [(name, name) for name in trace.values],
    "neuron": lambda trace, selection: numbered_options(trace.config.d_ff),
    "depth": depth_options,
    "target": next_token_options,
    "pattern": lambda trace, selection: translated_options(PATTERNS),
    "window": window_options,
    "head_score": lambda trace, selection: head_scores(),
    "first_token": lambda trace, selection: [("shown", _("counts")), ("hidden", _("left out"))],
    "lens": lambda trace, selection: translated_options(LENSES),
    "direction": direction_options,
    "clean_run": lambda trace, selection: [("b", _("B (A is corrupted)")), ("a", _("A (B is corrupted)"))],
    "answer": lambda trace, selection: likely_token_options(trace),
    "wrong": lambda trace, selection: likely_token_options(trace),
    "metric": lambda trace, selection: translated_options(METRICS),
    "patch_direction": lambda trace, selection: translated_options(DIRECTIONS),
    "patch_position": lambda trace, selection: translated_options(BY_POSITION),
    "patch_head": lambda trace, selection: translated_options(BY_HEAD),
    "receiver": lambda trace, selection: translated_options(RECEIVERS),
    "rival": lambda trace, selection: [(0, _("nothing")), *next_token_options(trace, selection)],
}
