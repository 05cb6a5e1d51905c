"""Selection in views: what the page chooses where nothing is given, and drop-down lists in which a user chooses."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.feed_forward import layer_neurons
from explorer.analysis.head_scores import HEAD_SCORES
from explorer.analysis.next_token import ranking_without_interventions, token_rank
from explorer.explain.notation import escape_token
from explorer.state.selection import Selection, SelectionField, find_field
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.labels import target_and_contrast


@dataclass(frozen=True)
class SelectionDropdown:
    """A drop-down list for a field of the selection.

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


def make_selection_dropdowns(
    fields: Sequence[str], trace: Trace, selection: Selection, runs: Comparison | None = None
) -> list[SelectionDropdown]:
    """Return the drop-down lists for these fields of the selection.

    Args:
        runs: the two runs of a comparing view, whose own fields get them in the trace's place.
    """
    return [make_selection_dropdown(field, trace, selection, runs) for field in fields]


def make_selection_dropdown(
    name: str, trace: Trace, selection: Selection, runs: Comparison | None = None
) -> SelectionDropdown:
    """Return a field of the selection with its title and options."""
    if name in OPTIONS:
        return SelectionDropdown(name, translate(TITLES[name]), OPTIONS[name](trace, selection))
    field = find_field(name)
    texts = [(value, translate(text)) for value, text in field.texts.items()]
    return SelectionDropdown(
        name, translate(field.label), field.options(runs or trace, selection) if field.options else texts, field.is_free
    )


def numbered_options(size: int) -> list[tuple[int, str]]:
    """Return the numbers from 0 to size − 1 as options."""
    return [(i, str(i)) for i in range(size)]


def position_options(trace: Trace, last: int) -> list[tuple[int, str]]:
    """Return the positions up to `last` as options, with their tokens."""
    return [(i, f"{i}  {escape_token(token)}") for i, token in enumerate(trace.tokens[: last + 1])]


def next_token_options(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    """Return the most probable tokens after the query by rank; always the chosen ones and the actual next token.

    For a run with interventions: ranks in the run without them, and the current ranks.
    """
    order = ranking_without_interventions(trace, selection.query)
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


def depth_options(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    """Return the depths of the residual stream as options."""
    blocks = range(trace.config.num_layers)
    return [(0, _("0  embedding")), *((i + 1, _("{depth}  after block {block}", depth=i + 1, block=i)) for i in blocks)]


def window_options(trace: Trace, selection: Selection) -> list[tuple[int, str]]:
    """Return the numbers of tokens that a figure can be limited to, as options."""
    narrower = [count for count in WINDOWS if count < len(trace)]
    options = ((count, _("{count} around the chosen", count=count)) for count in narrower)
    return [(0, _("all {count} tokens", count=len(trace))), *options]


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
    "residual_depth": N_("depth"),
    "target": N_("explain"),
    "rival": N_("against"),
    "window": N_("in sight"),
    "first_token": N_("first token"),
}
OPTIONS: dict[str, Callable[[Trace, Selection], list[tuple[Any, str]]]] = {
    "layer": lambda trace, selection: numbered_options(trace.config.num_layers),
    "head": lambda trace, selection: numbered_options(trace.config.num_heads),
    "query": lambda trace, selection: position_options(trace, len(trace) - 1),
    "key": lambda trace, selection: position_options(trace, selection.query),
    "tap": lambda trace, selection: [(name, name) for name in trace.values],
    "neuron": lambda trace, selection: numbered_options(trace.config.d_ff),
    "residual_depth": depth_options,
    "target": next_token_options,
    "window": window_options,
    "first_token": lambda trace, selection: [("shown", _("counts")), ("hidden", _("left out"))],
    "rival": lambda trace, selection: [
        (0, _("nothing")),
        *(option for option in next_token_options(trace, selection) if option[0] != selection.target),
    ],
}


def head_score_options(trace: Trace, selection: Selection) -> list[tuple[str, str]]:
    """Return the head scores as options with their labels."""
    return [(name, translate(score.label)) for name, score in HEAD_SCORES.items()]


HEAD_SCORE_FIELD = SelectionField(
    "head_score", "previous_token", N_("head score"), tuple(HEAD_SCORES), head_score_options
)


def complete_selection(trace: Trace, fields: Mapping[str, Any]) -> Selection:
    """Return the selection with some fields as given, clamped to the run, and the others as the page would choose."""
    query = fields.get("query", len(trace) - 1)
    selection = Selection().replace(query=query, key=max(0, query - 1)).replace(**fields).clamp_to_trace(trace)
    if trace.has_weights and trace.has_tap("blocks.*.attn.z"):
        selection = select_strongest(trace, selection, fields.keys() - {"query"})
    return selection


def select_strongest(trace: Trace, selection: Selection, named: Collection[str]) -> Selection:
    """Select the head with the largest effect on the target's logit, its query's top key, and the top neuron there.

    In the Positions view, which shows two tokens, the key is another token than the query if the run has one.

    Args:
        named: fields that are chosen already, which stay.
    """
    if not named & {"layer", "head"}:
        attribution = direct_logit_attribution(trace, selection.query, *target_and_contrast(trace, selection))
        layer, head = np.unravel_index(np.abs(attribution.heads).argmax(), attribution.heads.shape)
        selection = replace(selection, layer=int(layer), head=int(head))
    if not named & {"key", "query"}:  # a link with a query alone means key 0, which short addresses leave out
        pattern = trace[f"blocks.{selection.layer}.attn.pattern"]  # (H, T, T)
        end = selection.query if selection.view == "positions" and selection.query else selection.query + 1
        selection = replace(selection, key=int(pattern[selection.head, selection.query, :end].argmax()))
    if "neuron" not in named:
        strongest = layer_neurons(trace, selection.layer, selection.query).top(1)
        selection = replace(selection, neuron=int(strongest[0]))
    return selection
