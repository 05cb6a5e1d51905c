"""Overview: the whole model as a map, with each component's contribution at one token."""

import html
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    ForwardPassOverview,
    component_contribution,
    component_value,
    forward_pass_overview,
    head_contribution,
    logit_components,
)
from explorer.analysis.next_token import (
    next_token_distribution,
    next_token_probability,
    ranking_without_interventions,
    token_rank,
)
from explorer.analysis.residual import SUBLAYERS, norm_divisor, residual_norm, residual_stages
from explorer.architecture.formulas import logit_bias_terms_label
from explorer.architecture.residual_stream import norms_on_residual_stream
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_contribution, format_number, format_six_digits, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.labels import (
    NORMS,
    PARTS,
    SUM_CHECK,
    contribution_sum_text,
    logit_label,
    target_and_contrast,
    target_token,
)
from explorer.views.overview.map_layout import LANDSCAPE_HEIGHT, LANDSCAPE_WIDTH, LandscapeLayout
from explorer.views.overview.map_parts import MapPart, MapPartBuilder, ModelMap
from explorer.views.overview.model_map import MAPS, make_diagram
from explorer.views.overview.whole_model import (
    OPEN_FIELD,
    cell_formula,
    draw_whole_model,
    share_curve_scale,
    verify_whole_model,
    whole_model_sentence,
)
from explorer.views.shared_plots import colour_legend
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL, figure, note_above, shorten_token
from explorer.views.verification import verify_derived
from explorer.views.view import COURSE, CURVES, Panel, TwoRunRenderer, View

ADDS = {"token": "token", "position": "position", "o_proj": "attention", "feed_forward": "feed_forward"}


def inspect_map_number(
    trace: Trace, selection: Selection, map_parts: Iterable[MapPart], point: ClickedPoint
) -> Derivation | None:
    """Derive the number of a map part, the one with the point's `item` as its index.

    It is a contribution to the explained logit, or a norm's divisor, a vector's norm or a probability; None for
    the rotation of q and k, which has an angle for each pair of dimensions.
    """
    map_part = get_item(list(map_parts), point.coordinate("item"))
    kind, selects = map_part.kind, map_part.selects
    token_id, contrast_id = target_and_contrast(trace, selection)
    query = selection.query
    if kind == "head":
        return head_contribution(trace, query, token_id, contrast_id, selects["layer"], selects["head"])
    if kind in ADDS:
        return component_contribution(trace, query, token_id, contrast_id, ADDS[kind], selects.get("layer", 0))
    if kind == "norm":
        return norm_divisor(trace, map_part.tap, query)
    if kind == "addition":
        taps = [stage.tap for stage in residual_stages(trace)]
        return residual_norm(trace, taps.index(map_part.tap), query)
    if kind == "lm_head":
        return component_contribution(trace, query, token_id, contrast_id, "logit")
    if kind == "next_token":
        return next_token_probability(
            trace, query, int(ranking_without_interventions(trace, query)[selects["target"] - 1])
        )
    return None


def inspect_waterfall_bar(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive a bar of the running sum; the last one is the total."""
    steps = [*logit_components(trace, ("attention", "feed_forward")), ("sum", None)]
    component, layer = get_item(steps, point.coordinate("item"))
    return component_contribution(trace, selection.query, *target_and_contrast(trace, selection), component, layer)


CLICK_FIELDS = ("view", "layer")  # what a click on a bar selects


class LogitSummand(NamedTuple):
    """A summand of the running sum; `selects` is what a click on it selects."""

    x: float
    value: float
    color: str
    name: str
    selects: dict


def logit_waterfall_chart(
    trace: Trace, selection: Selection, overview: ForwardPassOverview, score: str, alt: str
) -> go.Figure:
    """Draw a bar from the sum before each component to the sum after it, and a last bar of the total.

    Args:
        score: name of the explained logit.
        alt: alternative text, in a sentence.
    """
    plan, layers = LandscapeLayout(trace.config), range(trace.config.num_layers)
    end = (plan.offset_after_blocks("lm_head") + plan.offset_after_blocks("lm_head_end")) / 2
    x, values, colors, names, selections = zip(*logit_summands(trace, plan, overview), strict=True)
    after = np.cumsum(values)
    before = after - values
    hover_texts = [
        _(
            "{part} adds {value}<br>{first} → {last}",
            part=name,
            value=format_six_digits(value),
            first=format_six_digits(first),
            last=format_six_digits(last),
        )
        for name, value, first, last in zip(names, values, before, after, strict=True)
    ]
    total_text = _(
        "sum {total}<br>{score} was {logit}",
        total=format_six_digits(after[-1]),
        score=html.escape(score, quote=False),
        logit=format_six_digits(overview.attribution.logit),
    )
    clicks = [selection.as_dict() | change for change in (*selections, {"view": "prediction"})]
    width = min(18, 0.2 * plan.block_length)
    bars = go.Bar(
        x=[*x, end],
        y=[*values, after[-1]],
        base=[*before, 0.0],
        width=width,
        marker={"color": [*colors, RESIDUAL]},
        text=[*hover_texts, total_text],
        textposition="none",
        customdata=[tuple(click[field] for field in CLICK_FIELDS) for click in clicks],
        hovertemplate="%{text}<extra></extra>",
    )
    steps = range(len(x)) if plan.has_room_for_labels else ()
    words = go.Scatter(
        x=[position + (width / 2 if i else -width / 2) for i, position in enumerate((*(x[i] for i in steps), end))],
        y=[*(max(before[i], after[i]) for i in steps), after[-1]],
        text=[*(format_contribution(values[i]) for i in steps), format_contribution(after[-1]).removeprefix("+")],
        mode="text",
        textposition=["top left" if i else "top right" for i in (*steps, len(x))],
        textfont={"size": 11},
        hoverinfo="skip",
        cliponaxis=False,
    )
    joints = [
        {"type": "line", "x0": left, "x1": right, "y0": y, "y1": y, "line": {"color": RESIDUAL, "width": 1}}
        for (left, right), y in zip(pairwise([*x, end]), after, strict=True)
    ]
    return figure(
        [bars, words],
        alt=alt,
        shapes=[{**joint, "layer": "below"} for joint in joints],
        annotations=note_above(colour_legend(trace)),
        showlegend=False,
        margin={"l": 0, "r": 0},  # as wide as the map, so that each bar is below its part
        xaxis={
            "automargin": "height",
            "range": [0, LANDSCAPE_WIDTH],
            "fixedrange": True,
            "showgrid": False,
            "tickvals": [float(np.mean(plan.token)), *(plan.layer_offset(layer, 0.5) for layer in layers), end],
            "ticktext": [_("embedding"), *(plan.title(layer) for layer in layers), _("logit")],
        },
        yaxis={"automargin": False, "fixedrange": True, "showgrid": False, "showticklabels": False},
    ).set_meta(has_numbers=True)


def logit_summands(trace: Trace, plan: LandscapeLayout, overview: ForwardPassOverview) -> Iterator[LogitSummand]:
    """Yield the components of the logit in the order of the data flow."""
    for component, layer in logit_components(trace, ("attention", "feed_forward")):
        if layer is not None:
            x = plan.sum_offset(layer, {"attention": "attn", "feed_forward": "ffn"}[component])
        elif component == "token":
            x = float(np.mean(plan.token))
        else:
            x = plan.position_added if component == "position" else plan.offset_after_blocks("final_norm")
        color, name, view = SUMMANDS[component]
        name = translate(name, layer=layer) or logit_bias_terms_label(trace.config)
        selects = {"view": view} if layer is None else {"view": view, "layer": layer}
        yield LogitSummand(x, component_value(overview.attribution, component, layer), color, name, selects)


SUMMANDS = {  # component of a logit -> colour, name, and view that a click opens; "shift" depends on the model
    "token": (EMBEDDING, N_("the token’s embedding"), "tokens"),
    "position": (EMBEDDING, N_("its position"), "positions"),
    "attention": (ATTENTION, N_("attention of layer {layer}"), "attention"),
    "feed_forward": (FEED_FORWARD, N_("feed-forward of layer {layer}"), "feed_forward"),
    "shift": (NORM, "", "residual"),
    "changes": (RESIDUAL, N_("what the changes of the run put in"), "experiments"),
}


def overview_and_logit_names(trace: Trace, selection: Selection) -> tuple[ForwardPassOverview, str, str]:
    """Return the overview at the query, and the name of the target token's logit, in full and with shortened tokens."""
    tokens = target_and_contrast(trace, selection)
    numbers = forward_pass_overview(trace, selection.query, *tokens)
    return numbers, logit_label(trace, *tokens), logit_label(trace, *tokens, shorten_token)


def draw_model_map(trace: Trace, selection: Selection) -> ModelMap:
    """Return the map of the model in the order of the data flow, with its numbers at the query."""
    numbers, logit_name, score = overview_and_logit_names(trace, selection)
    layer, sublayer_index = np.unravel_index(np.abs(numbers.logit_effects).argmax(), numbers.logit_effects.shape)
    alt = _(
        "Map of {layers} layers at {token}: the stream’s length goes from {first} to {last}. Largest effect on "
        "{logit}: {sublayer} of layer {layer}, {change}.",
        layers=trace.config.num_layers,
        token=quote_token(trace.tokens[selection.query]),
        first=format_number(numbers.stream[0]),
        last=format_number(numbers.stream[-1]),
        sublayer=translate(list(SUBLAYERS.values())[sublayer_index]),
        layer=layer,
        logit=logit_name,
        change=format_number(numbers.logit_effects[layer, sublayer_index]),
    )
    return make_diagram(trace, selection, numbers, score, alt)


def inspect_map(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the value of the clicked part of the map."""
    numbers, _plain, score = overview_and_logit_names(trace, selection)
    return inspect_map_number(trace, selection, MapPartBuilder(trace, selection, numbers, score), point)


def draw_logit_waterfall(trace: Trace, selection: Selection) -> go.Figure:
    """Draw the target token's logit as a running sum along the map."""
    numbers, logit_name, score = overview_and_logit_names(trace, selection)
    alt = _(
        "{logit} after {token} as a running sum over {layers} layers, from {first} at the embedding to {last} at the "
        "end.",
        logit=f"{logit_name[0].upper()}{logit_name[1:]}",
        token=quote_token(trace.tokens[selection.query]),
        layers=trace.config.num_layers,
        first=format_number(numbers.attribution.token),
        last=format_number(numbers.attribution.total),
    )
    return logit_waterfall_chart(trace, selection, numbers, score, alt)


def describe_contribution_sum(trace: Trace, selection: Selection) -> str:
    """Return the sum of contributions to the target token's logit, in numbers."""
    query, config = selection.query, trace.config
    numbers, logit_name, _score = overview_and_logit_names(trace, selection)
    contributions, token_id = numbers.attribution, target_token(trace, selection)
    if "position_embed" in trace:
        sum_text = _(
            "embedding + position + attention + feed-forward of {layers} layers in turn", layers=config.num_layers
        )
    else:
        sum_text = _("embedding + attention + feed-forward of {layers} layers in turn", layers=config.num_layers)
    if norms_on_residual_stream(config):
        sum_text = _("{added}, every sum through a norm", added=sum_text)
    lines = (
        _(
            "residual stream x at {token} ({position}): {added}; ‖x‖₂ = {first} → {last}",
            token=quote_token(trace.tokens[query]),
            position=query,
            added=sum_text,
            first=format_number(numbers.stream[0]),
            last=format_number(numbers.stream[-1]),
        ),
        _(
            "{logit} = {parts} = {total}   captured {captured}, off by {error}",
            logit=logit_name,
            parts=contribution_sum_text(trace, contributions),
            total=format_six_digits(contributions.total),
            captured=format_six_digits(contributions.logit),
            error=format_number(contributions.error),
        ),
        _(
            "the model’s probability of {token} = e^logit / Σ e^logits = {probability}, rank {rank:,}",
            token=quote_token(trace.vocabulary[token_id]),
            probability=format_number(next_token_distribution(trace, query).plain[token_id]),
            rank=token_rank(trace, query, token_id),
        ),
    )
    return "\n".join(filter(None, (*lines, cell_formula(trace, selection))))


# All along the stream, what is written to it, and what norms leave.
VERIFY = verify_derived("blocks.0.resid_pre", *PARTS, *NORMS, "logits", against=SUM_CHECK)


VIEW = View(
    name="overview",
    title=N_("Whole model"),
    group="whole_model",
    in_story=True,
    order=10,
    description=N_(
        "One column for each block: the chosen token’s residual stream runs through them, and curves show what each "
        "head takes from earlier tokens."
    ),
    sentence=whole_model_sentence,
    fields=(OPEN_FIELD,),
    formula=describe_contribution_sum,
    required_taps=(
        *("embed", "blocks.*.attn.pattern", "blocks.*.attn.v", "blocks.*.attn.z", "blocks.*.ffn.out"),
        *("blocks.*.resid_post", "logits", "lm_head.weight"),
    ),
    unavailable_message=lambda config: _("Too little was captured of this model to draw its map."),
    controls=("query", "target", "rival"),
    code=("", "blocks.{layer}"),
    code_lines=("x = block(x, turns",),
    panels=(
        Panel(
            name="whole",
            title=N_("The whole model"),
            draw=draw_whole_model,
            kind="whole_model",
            no_difference_reason=CURVES,
            two_run_renderer=TwoRunRenderer(share_curve_scale, lambda first, *others: first),
            verify=verify_whole_model,
            no_inspection=N_("Open a part of it: the steps to its number are there."),
        ),
        Panel(
            name="map",
            title=N_("Every part of the model, with its numbers"),
            draw=draw_model_map,
            kind="model_map",
            two_run_renderer=MAPS,
            inspect=inspect_map,
            verify=VERIFY,
            height=LANDSCAPE_HEIGHT,
            min_width=LANDSCAPE_WIDTH,
        ),
        Panel(
            name="sum",
            no_difference_reason=COURSE,
            title=N_("How the explained logit adds up, part by part"),
            draw=draw_logit_waterfall,
            inspect=inspect_waterfall_bar,
            click_selects={"customdata": CLICK_FIELDS},
            verify=VERIFY,
            height=240,
            min_width=LANDSCAPE_WIDTH,
        ),
    ),
)
