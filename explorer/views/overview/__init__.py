"""Overview: the whole model as a map, with each component's contribution at one token."""

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    ForwardPassOverview,
    forward_pass_overview,
)
from explorer.analysis.next_token import next_token_distribution, token_rank
from explorer.analysis.residual import SUBLAYERS
from explorer.architecture.residual_stream import norms_on_residual_stream
from explorer.explain.clicked_point import ClickedPoint
from explorer.explain.derivation import Derivation
from explorer.explain.notation import format_number, format_six_digits, quote_token
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
from explorer.views.overview.logit_waterfall import (
    CLICK_FIELDS,
    inspect_map_number,
    inspect_waterfall_bar,
    logit_waterfall_chart,
)
from explorer.views.overview.map_layout import LANDSCAPE_HEIGHT, LANDSCAPE_WIDTH
from explorer.views.overview.map_parts import MapPartBuilder, ModelMap
from explorer.views.overview.model_map import MAPS, make_diagram
from explorer.views.overview.whole_model import (
    OPEN_FIELD,
    cell_formula,
    draw_whole_model,
    share_curve_scale,
    verify_whole_model,
    whole_model_sentence,
)
from explorer.views.style import shorten_token
from explorer.views.verification import verify_derived
from explorer.views.view import COURSE, CURVES, Panel, TwoRunRenderer, View, make_no_difference_reason


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
            no_difference_reason=make_no_difference_reason(CURVES),
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
            no_difference_reason=make_no_difference_reason(COURSE),
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
