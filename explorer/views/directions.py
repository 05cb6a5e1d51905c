"""Directions view: the stream's component along a direction, and steering along it."""

from contextlib import suppress
from textwrap import wrap

import numpy as np

from explorer.analysis.next_token import ranking_without_interventions
from explorer.analysis.steering import (
    SteeringEffectsByPrompt,
    direction_cosine,
    direction_cosines,
    embed_and_block_output_taps,
    parse_direction_or_default,
    prompt_lists_by_direction,
    steering_effect,
    steering_effects_on_prompts,
)
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_number, quote_token, token_formatter
from explorer.interventions import DirectionSpec
from explorer.state.generation_settings import GenerationSettings
from explorer.state.selection import Selection, SelectionField
from explorer.tracing.jobs import ResultNotReadyError
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.intervention_controls import REMOVE_DIRECTION, STEER_ALONG_DIRECTION
from explorer.views.labels import target_and_contrast
from explorer.views.style import (
    ATTENTION,
    SELECTED,
    column_band,
    figure,
    label,
    named_axis,
    position_labels,
    token_axis,
)
from explorer.views.verification import verify_derived
from explorer.views.view import Panel, View


def direction_options(trace: Trace, selection: Selection) -> list[tuple[str, str]]:
    """Return the directions of prompt lists and of chosen components; always the chosen direction."""
    order, format_token = ranking_without_interventions(trace, selection.query), token_formatter(trace)
    token_id, contrast_id = (int(order[max(1, rank) - 1]) for rank in (selection.target, selection.rival or 2))
    layer, direction = selection.layer, selection.option("direction")
    direction_specs = [
        DirectionSpec("unembed", (token_id,)),
        *([DirectionSpec("difference", (token_id, contrast_id))] if token_id != contrast_id else []),
        DirectionSpec("neuron", (layer, selection.neuron)),
        DirectionSpec("ov", (layer, selection.head, 0)),
    ]
    options = {text: translate(lists.name) for text, lists in prompt_lists_by_direction(trace).items()}
    options |= {str(direction_spec): direction_spec.describe(format_token) for direction_spec in direction_specs}
    chosen_spec = parse_direction_or_default(trace, direction)
    options.setdefault(str(chosen_spec), chosen_spec.describe(format_token))
    value_by_text = {str(chosen_spec): direction}  # the option must equal the selection's own text
    return [(value_by_text.get(text, text), description) for text, description in options.items()]


# A direction in the stream, as text (see `DirectionSpec`); "" for the first there is.
DIRECTION_FIELD = SelectionField("direction", "", N_("direction"), options=direction_options)


def selected_direction(trace: Trace, selection: Selection) -> DirectionSpec:
    """Return the selected direction, or the default if none is valid."""
    return parse_direction_or_default(trace, selection.option("direction"))


def stream_cosine_map(trace: Trace, selection: Selection) -> go.Figure:
    """Draw the cosine of every token's stream (column) at every depth (row) with the direction; the query framed."""
    direction_spec, query = selected_direction(trace, selection), selection.query
    values = direction_cosines(trace, trace.direction(direction_spec))  # (L + 1, T)
    largest_index = np.unravel_index(np.abs(values).argmax(), values.shape)
    largest = float(np.abs(values).max()) or 1.0
    rows = [_("embedding"), *(_("after layer {layer}", layer=layer) for layer in range(len(values) - 1))]
    return figure(
        go.Heatmap(
            x=position_labels(trace.tokens),
            y=rows,
            z=values,
            zmin=-largest,
            zmax=largest,
            customdata=np.repeat(np.maximum(0, np.arange(len(rows)) - 1)[:, None], len(trace), axis=1),
            hovertemplate=_("token %{x}, %{y}<br>cosine %{z:.3g}<extra></extra>"),
            colorbar={"title": {"text": _("cosine"), "side": "right"}},
        ),
        alt=_(
            "Cosine of the stream of {tokens} tokens at {depths} depths with {direction}: largest in size, {value}, at "
            "{token}, {depth}.",
            tokens=len(trace),
            depths=len(rows),
            direction=direction_spec.describe(token_formatter(trace)),
            value=format_number(values[largest_index]),
            token=quote_token(trace.tokens[largest_index[1]]),
            depth=rows[largest_index[0]],
        ),
        xaxis={**token_axis(trace.tokens, _("token"))},
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category"},
        shapes=[column_band(query, width=2)],
    )


def steering_effects(trace: Trace, selection: Selection) -> SteeringEffectsByPrompt:
    """Return the logit differences on the example prompts, without and with steering."""
    token_id, contrast_id = target_and_contrast(trace, selection)
    if contrast_id is None:
        contrast_id = target_and_contrast(
            trace, Selection(query=selection.query, target=2 if selection.target == 1 else 1)
        )[0]
    return steering_effects_on_prompts(
        trace, selected_direction(trace, selection), selection.layer, token_id, contrast_id
    )


MAX_LINE_CHARS = 28  # of a prompt beside its bar


def example_effect_bars(trace: Trace, selection: Selection) -> go.Figure:
    """Draw the effect of adding the direction after every example prompt, the largest first."""
    steering = steering_effects(trace, selection)
    order = np.argsort(-steering.changes, kind="stable")
    values, expected_sign = steering.changes[order], np.sign(steering.edit.amount)
    texts = [label(trace.join_tokens(prompt), max_chars=80).replace("·", " ") for prompt in steering.prompts]
    names = [
        "<br>".join(wrap(texts[i], MAX_LINE_CHARS, break_long_words=False, max_lines=2, placeholder="…")) for i in order
    ]
    return figure(
        go.Bar(
            x=values,
            y=np.arange(len(values)),
            orientation="h",
            marker={"color": [SELECTED if value * expected_sign < 0 else ATTENTION for value in values]},
            text=[
                f"{texts[i]}<br>"
                f"{format_number(steering.before[i])} → "
                f"{format_number(steering.after[i])}: {format_number(steering.changes[i])}"
                for i in order
            ],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "{change}: how it changes by how much the logit of {token} is above that of {rival} after each of {count} "
            "prompts, from {least} to {most}; {backwards} go backwards.",
            least=format_number(values.min()),
            most=format_number(values.max()),
            token=quote_token(trace.vocabulary[steering.token_id]),
            rival=quote_token(trace.vocabulary[steering.contrast_id]),
            change=steering.edit.describe(trace.config, token_formatter(trace)),
            backwards=steering.num_reversed,
            count=len(names),
        ),
        xaxis={
            "title": {
                "text": _(
                    "change of the logit of {token} less that of {rival};<br>{backwards} of {count} go backwards (red)",
                    token=label(trace.vocabulary[steering.token_id]),
                    rival=label(trace.vocabulary[steering.contrast_id]),
                    backwards=steering.num_reversed,
                    count=len(names),
                )
            }
        },
        yaxis=named_axis(names, ticklabelstandoff=6, autorange="reversed"),
        hovermode="y",  # a short bar is hard to hit
    )


def inspect_stream_cosine(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked cosine of the stream with the direction."""
    return direction_cosine(trace, selected_direction(trace, selection), point.row, point.column)


def inspect_example_effect(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked effect of steering on an example."""
    steering = steering_effects(trace, selection)
    order = np.argsort(-steering.changes, kind="stable").tolist()
    return steering_effect(trace, steering, get_item(order, point.coordinate("item")))


CONTINUATION_TOKENS = 24  # tokens, with the changes and without


def describe_direction(trace: Trace, selection: Selection) -> str:
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
        quote_token(run.join_tokens(run.continue_tokens(CONTINUATION_TOKENS, settings)))
        for run in (trace, trace.baseline)
    )
    return "\n".join(
        [
            _("with the changes the text goes on, with the sampling and the seed of the panel: {text}", text=after),
            _("without, on the same random numbers: {text}", text=before),
        ]
    )


def directions_sentence(trace: Trace, selection: Selection) -> str:
    """Return where the query's stream has the cosine furthest from 0 with the direction, and what adding it does."""
    cosines = direction_cosines(trace, trace.direction(selected_direction(trace, selection)))[:, selection.query]
    depth = int(np.abs(cosines).argmax())
    pointing = translate(
        POINTS_AGAINST if cosines[depth] < 0 else POINTS_ALONG,
        token=quote_token(trace.tokens[selection.query]),
        depth=_("after layer {layer}", layer=depth - 1) if depth else _("at the embedding"),
        cosine=format_number(cosines[depth]),
    )
    effect = ""
    with suppress(ResultNotReadyError):  # the figure's placeholder shows how far that is
        steering = steering_effects(trace, selection)
        effect = _(
            "Adding it raises {token} over {rival} in {count} of {prompts} prompts.",
            token=quote_token(trace.vocabulary[steering.token_id]),
            rival=quote_token(trace.vocabulary[steering.contrast_id]),
            count=int((steering.changes > 0).sum()),
            prompts=len(steering.prompts),
        )
    return f"{pointing} {effect}".strip()


POINTS_ALONG = N_("{token} is furthest along the direction {depth} (cosine {cosine}).")
POINTS_AGAINST = N_("{token} is furthest against the direction {depth} (cosine {cosine}).")

VIEW = View(
    name="directions",
    title=N_("Directions"),
    group="try",
    order=110,
    fields=(DIRECTION_FIELD,),
    description=N_(
        "Choose a direction in the residual stream, see which tokens have it, then push the stream along it."
    ),
    sentence=directions_sentence,
    formula=describe_direction,
    continuation_text=continuations_text,
    direction_spec=selected_direction,
    required_taps=("embed", "blocks.*.resid_post", "logits", "lm_head.weight"),
    unavailable_message=lambda config: _("Too little was captured of this model to look for directions."),
    controls=("direction", "layer", "query", "target", "rival", "head", "neuron"),
    intervention_controls=(STEER_ALONG_DIRECTION, REMOVE_DIRECTION),
    panels=(
        Panel(
            name="projection",
            title=N_("Each token’s stream along the direction"),
            draw=stream_cosine_map,
            click_selects={"x": "query", "customdata": "layer"},
            verify=verify_derived(embed_and_block_output_taps, "logits"),
            inspect=inspect_stream_cosine,
            width="half",
        ),
        Panel(
            name="examples",
            title=N_("What adding it does after other prompts"),
            draw=example_effect_bars,
            verify=verify_derived("logits"),
            inspect=inspect_example_effect,
            width="half",
        ),
    ),
)
