"""Overview: the whole model as a map, with what each part does at one token."""

import numpy as np

from explorer.analysis.next_token import next_token, rank_of
from explorer.analysis.overview import Overview, overview
from explorer.analysis.residual import SUBLAYERS
from explorer.architecture.stream import stream_norms
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.checks import worked_out
from explorer.views.explained import NORMS, PARTS, SUM, explained, explained_token, logit_of, sum_of_kinds
from explorer.views.overview.diagram import Diagram
from explorer.views.overview.model_map import draw
from explorer.views.overview.part_inspection import inspect_part, inspect_step
from explorer.views.overview.parts import Parts
from explorer.views.overview.running import CLICK, running_sum
from explorer.views.overview.two_maps import MAPS
from explorer.views.overview.wide import HEIGHT, WIDTH
from explorer.views.style import shortened
from explorer.views.two_runs.alone import COURSE, alone
from explorer.views.view import Panel, View


def explanation(trace: Trace, selection: Selection) -> tuple[Overview, str, str]:
    """The numbers, and what is explained by them: in full, and with its tokens shortened."""
    tokens = explained(trace, selection)
    found = overview(trace, selection.query, *tokens)
    return found, logit_of(trace, *tokens), logit_of(trace, *tokens, shortened)


def map_of(trace: Trace, selection: Selection) -> Diagram:
    """The model in the order of the data's way, with what it does at the selected token."""
    found, plain, score = explanation(trace, selection)
    layer, part = np.unravel_index(np.abs(found.adds).argmax(), found.adds.shape)
    alt = _(
        "Map of {layers} layers at {token}: the stream is {first} long at first and {last} at last. Furthest moves "
        "{sublayer} of layer {layer} {logit}, by {change}.",
        layers=trace.config.num_layers,
        token=quoted(trace.tokens[selection.query]),
        first=number(found.stream[0]),
        last=number(found.stream[-1]),
        sublayer=look_up(list(SUBLAYERS.values())[part]),
        layer=layer,
        logit=plain,
        change=number(found.adds[layer, part]),
    )
    return draw(trace, selection, found, score, alt)


def inspect_map(trace: Trace, selection: Selection, point: Point) -> Derivation | None:
    found, _plain, score = explanation(trace, selection)
    return inspect_part(trace, selection, Parts(trace, selection, found, score), point)


def sum_of(trace: Trace, selection: Selection) -> go.Figure:
    """The explained logit as it grows along the map."""
    found, plain, score = explanation(trace, selection)
    alt = _(
        "{logit} after {token} as a running sum over {layers} layers, from {first} at the embedding to {last} at the "
        "end.",
        logit=f"{plain[0].upper()}{plain[1:]}",
        token=quoted(trace.tokens[selection.query]),
        layers=trace.config.num_layers,
        first=number(found.parts.token),
        last=number(found.parts.total),
    )
    return running_sum(trace, selection, found, score, alt)


def formula(trace: Trace, selection: Selection) -> str:
    query, config = selection.query, trace.config
    found, plain, _score = explanation(trace, selection)
    parts, token_id = found.parts, explained_token(trace, selection)
    if "position_embed" in trace:
        added = _(
            "embedding + position + attention + feed-forward of {layers} layers in turn", layers=config.num_layers
        )
    else:
        added = _("embedding + attention + feed-forward of {layers} layers in turn", layers=config.num_layers)
    if stream_norms(config):
        added = _("{added}, every sum through a norm", added=added)
    lines = (
        _(
            "residual stream x at {token} ({position}): {added}; ‖x‖₂ = {first} → {last}",
            token=quoted(trace.tokens[query]),
            position=query,
            added=added,
            first=number(found.stream[0]),
            last=number(found.stream[-1]),
        ),
        _(
            "{logit} = {parts} = {total}   captured {captured}, off by {error}",
            logit=plain,
            parts=sum_of_kinds(trace, parts),
            total=number(parts.total),
            captured=number(parts.logit),
            error=number(parts.error),
        ),
        _(
            "the model’s probability of {token} = e^logit / Σ e^logits = {probability}, rank {rank:,}",
            token=quoted(trace.vocabulary[token_id]),
            probability=number(next_token(trace, query).plain[token_id]),
            rank=rank_of(trace, query, token_id),
        ),
    )
    return "\n".join(lines)


# All along the stream, what is written to it, and what norms leave.
MARK = worked_out("blocks.0.resid_pre", *PARTS, *NORMS, "logits", against=SUM)


VIEW = View(
    name="overview",
    title=N_("Overview"),
    words=N_(
        "Each token is a vector that runs through the model along the line (the residual stream): in every layer "
        "attention, on one side, and feed-forward, on the other, read it and add to it; lm_head turns the last into a "
        "number for every possible next token (the logit). "
        "Lines are as thick as the chosen token’s vectors are long, colours say what a part adds to the explained "
        "logit: choose a part to open it."
    ),
    formula=formula,
    needs=("embed", "blocks.*.attn.z", "blocks.*.ffn.out", "blocks.*.resid_post", "logits", "lm_head.weight"),
    otherwise=lambda config: _("Too little was captured of this model to draw its map."),
    controls=("query", "target", "rival"),
    panels=(
        Panel(
            name="map",
            title=N_(
                "The model, from the token to the next token; choose a part to open it, Shift-click or press long for "
                "its working"
            ),
            draw=map_of,
            kind="model_map",
            pair=MAPS,
            inspect=inspect_map,
            mark=MARK,
            height=HEIGHT,
            min_width=WIDTH,
        ),
        Panel(
            name="sum",
            alone=alone(COURSE),
            title=N_("How the explained logit comes about, part by part: the sum so far"),
            draw=sum_of,
            inspect=inspect_step,
            selects={"customdata": CLICK},
            mark=MARK,
            height=240,
            min_width=WIDTH,
        ),
    ),
)
