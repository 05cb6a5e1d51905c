"""Overview: the whole model as a map, with what each part does at one token."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.attribution import by_kind
from explorer.analysis.next_token import next_token, rank_of
from explorer.analysis.overview import Overview, overview
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.checks import worked_out
from explorer.views.explained import KINDS, PARTS, SUM, explained, logit_of
from explorer.views.overview import plan as overview_plan
from explorer.views.overview.diagram import Diagram
from explorer.views.overview.model_map import draw
from explorer.views.overview.part_inspection import inspect_part, inspect_step
from explorer.views.overview.parts import Parts
from explorer.views.overview.running import CLICK, running_sum
from explorer.views.style import shortened
from explorer.views.view import Panel, View


def explanation(trace: Trace, selection: Selection) -> tuple[Overview, str, str]:
    """The numbers, and what is explained by them: in full, and with its tokens shortened."""
    token_id, rival_id = explained(trace, selection)
    names = [shortened(trace.vocabulary[i]) for i in (token_id, rival_id) if i is not None]
    found = overview(trace, selection.query, token_id, rival_id)
    return found, logit_of(trace, token_id, rival_id), f"the logit of {' less that of '.join(names)}"


def map_of(trace: Trace, selection: Selection) -> Diagram:
    """The model in the order of the data's way, with what it does at the selected token."""
    found, plain, score = explanation(trace, selection)
    layer, part = np.unravel_index(np.abs(found.adds).argmax(), found.adds.shape)
    alt = (
        f"Map of {trace.config.num_layers} layers at {quoted(trace.tokens[selection.query])}: the stream is "
        f"{number(found.stream[0])} long at first and {number(found.stream[-1])} at last. Furthest moves "
        f"{('attention', 'feed-forward')[part]} of layer {layer} {plain}, by {number(found.adds[layer, part])}."
    )
    return draw(trace, selection, found, score, alt)


def inspect_map(trace: Trace, selection: Selection, point: Point) -> Derivation | None:
    found, _, score = explanation(trace, selection)
    return inspect_part(trace, selection, Parts(trace, selection, found, score), point)


def sum_of(trace: Trace, selection: Selection) -> go.Figure:
    """The explained logit as it grows along the map."""
    found, plain, score = explanation(trace, selection)
    alt = (
        f"{plain[0].upper()}{plain[1:]} after {quoted(trace.tokens[selection.query])} as a running sum over "
        f"{trace.config.num_layers} layers, from {number(found.parts.token)} at the embedding to "
        f"{number(found.parts.total)} at the end."
    )
    return running_sum(trace, selection, found, score, alt)


def formula(trace: Trace, selection: Selection) -> str:
    query, config = selection.query, trace.config
    found, plain, _ = explanation(trace, selection)
    parts = found.parts
    token_id, _ = explained(trace, selection)
    added = " + ".join(f"{KINDS[kind]} {number(value)}" for kind, value in by_kind(trace, parts).items())
    embedding = "embedding + position" if "position_embed" in trace else "embedding"
    each = ", every sum through a norm" if config.norm_placement == "post" else ""
    return (
        f"residual stream x at {quoted(trace.tokens[query])} ({query}): {embedding} + attention + feed-forward of "
        f"{config.num_layers} layers in turn{each}; ‖x‖₂ = {number(found.stream[0])} → {number(found.stream[-1])}\n"
        f"{plain} = {added} = {number(parts.total)}"
        f"   captured {number(parts.logit)}, off by {number(parts.error)}\n"
        f"the model’s probability of {quoted(trace.vocabulary[token_id])} = e^logit / Σ e^logits "
        f"= {number(next_token(trace, query).plain[token_id])}, rank {rank_of(trace, query, token_id):,}"
    )


# All along the stream, what is written to it and, of a post-norm model, what its norms leave.
MARK = worked_out(
    "blocks.0.resid_pre", *PARTS, "blocks.*.attn.out", "blocks.*.attn_norm", "blocks.*.ffn_norm", "logits", against=SUM
)


VIEW = View(
    name="overview",
    title="Overview",
    words=(
        "Each token is a vector that runs through the model from left to right (the residual stream): in every layer "
        "attention, above, and feed-forward, below, read it and add to it; lm_head turns the last into a score for "
        "every possible next token (the logit). "
        "Lines are as thick as the chosen token’s vectors are long, colours say what a part adds to the explained "
        "logit: choose a part to open it."
    ),
    formula=formula,
    needs=("embed", "blocks.*.attn.z", "blocks.*.resid_mid", "blocks.*.ffn.out", "blocks.*.resid_post", "logits"),
    otherwise=lambda config: "Too little was captured of this model to draw its map.",
    controls=("query", "target", "rival"),
    panels=(
        Panel(
            name="map",
            title="The model, from the token to the next token; click a part to open it, Shift-click or press long "
            "for its working",
            draw=map_of,
            kind="model_map",
            inspect=inspect_map,
            mark=MARK,
            height=overview_plan.HEIGHT,
            min_width=overview_plan.WIDTH,
        ),
        Panel(
            name="sum",
            title="How the explained logit comes about, part by part: the sum so far",
            draw=sum_of,
            inspect=inspect_step,
            selects={"customdata": CLICK},
            mark=MARK,
            height=240,
            min_width=overview_plan.WIDTH,
        ),
    ),
)
