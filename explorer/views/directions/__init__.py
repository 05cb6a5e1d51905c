"""Directions view: the stream's component along a direction, and steering along it."""

from explorer.analysis.steering import direction_cosines, embed_and_block_output_taps
from explorer.explain.notation import format_number, quote_token, token_formatter
from explorer.state.generation_settings import GenerationSettings
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _
from explorer.views.directions.fields import DIRECTION_FIELD
from explorer.views.directions.figures import (
    example_effect_bars,
    inspect_example_effect,
    inspect_stream_cosine,
    selected_direction,
    stream_cosine_map,
)
from explorer.views.verification import Verification, verify_derived
from explorer.views.view import Panel, View
from explorer.views.view_intervention_controls import REMOVE_DIRECTION, STEER_ALONG_DIRECTION

CONTINUATION_TOKENS = 24  # tokens, with the changes and without


def formula(trace: Trace, selection: Selection) -> str:
    """Return the selected direction and its cosine with the stream, in numbers."""
    direction_spec, query = selected_direction(trace, selection), selection.query
    value = direction_cosines(trace, trace.direction(direction_spec))[selection.layer + 1, query]
    lines = [
        _("u: {direction}, made to have length 1", direction=direction_spec.describe(token_formatter(trace))),
        _(
            "cos(x, u) = x·u / ‖x‖ = {value} at {token} ({position}) after layer {layer}",
            value=format_number(value),
            token=quote_token(trace.tokens[query]),
            position=query,
            layer=selection.layer,
        ),
    ]
    return "\n".join(lines)


def continuations_text(trace: Trace, selection: Selection, settings: GenerationSettings) -> str:
    """Return the continuations of a run with and without its interventions; "" if it has none."""
    if trace.baseline is None:
        return ""
    after, before = (
        quote_token(run.text(run.continue_tokens(CONTINUATION_TOKENS, settings))) for run in (trace, trace.baseline)
    )
    return "\n".join(
        [
            _("with the changes the text goes on, with the sampling and the seed of the panel: {text}", text=after),
            _("without, on the same random numbers: {text}", text=before),
        ]
    )


def verify_stream_cosines(trace: Trace, selection: Selection) -> Verification:
    """Verify the residual stream after every block, and the logits."""
    return verify_derived(*embed_and_block_output_taps(trace), "logits")(trace, selection)


VIEW = View(
    name="directions",
    title=N_("Directions"),
    group="try",
    order=110,
    fields=(DIRECTION_FIELD,),
    description=N_(
        "Choose a direction in the residual stream: see which tokens have it, then push the stream along it and see "
        "what changes."
    ),
    formula=formula,
    continuation_text=continuations_text,
    direction_spec=selected_direction,
    required_taps=("embed", "blocks.*.resid_post", "logits", "lm_head.weight"),
    unavailable_message=lambda config: _("Too little was captured of this model to look for directions."),
    controls=("direction", "layer", "query", "target", "rival", "head", "neuron"),
    intervention_controls=(STEER_ALONG_DIRECTION, REMOVE_DIRECTION),
    panels=(
        Panel(
            name="projection",
            title=N_("How far each token’s stream points along the direction, from the embedding down"),
            draw=stream_cosine_map,
            click_selects={"x": "query", "customdata": "layer"},
            verify=verify_stream_cosines,
            inspect=inspect_stream_cosine,
            height=360,
            min_width=640,
        ),
        Panel(
            name="examples",
            title=N_("What adding it does after other prompts, one by one"),
            draw=example_effect_bars,
            verify=verify_derived("logits"),
            inspect=inspect_example_effect,
            height=420,
        ),
    ),
)
