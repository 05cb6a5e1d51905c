"""The directions view's field of the selection."""

from explorer.analysis.next_token import ranking_without_interventions
from explorer.analysis.steering import parse_direction_or_default, prompt_lists_by_direction
from explorer.explain.notation import token_formatter
from explorer.interventions import DirectionSpec
from explorer.state.selection import Selection, SelectionField
from explorer.tracing.trace import Trace
from explorer.translations import N_, translate


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
