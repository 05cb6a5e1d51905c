"""Derivations of steering: cosines with a direction, and effects of adding it."""

from explorer.analysis.steering import SteeringEffectsByPrompt, direction_cosines, embed_and_block_output_taps
from explorer.explain.calculation import Calculation, Input, read_input
from explorer.explain.clicked_point import get_element, get_item
from explorer.explain.derivation import Derivation
from explorer.explain.derived.arithmetic import cosine
from explorer.explain.labels import format_token_position, token_formatter
from explorer.explain.notation import format_number
from explorer.explain.source_line import SourceLine
from explorer.state.interventions import DirectionSpec
from explorer.tracing.trace import Trace
from explorer.translations import _

STEERING = "explorer/analysis/steering.py"


def direction_cosine(trace: Trace, spec: DirectionSpec, depth: int, position: int) -> Derivation:
    """Derive the cosine of a token's stream at a depth with a direction."""
    unit = trace.direction(spec)
    displayed_value = get_element(direction_cosines(trace, unit), depth, position)
    x, read = read_input(trace, get_item(embed_and_block_output_taps(trace), depth), position)
    working = cosine((x, read), (unit, Input(spec.describe(token_formatter(trace)), (), unit.shape)), ("x", "u"))
    location = _("of {token}", token=format_token_position(trace, position))
    return Derivation(
        _("cosine with the direction"),
        location,
        displayed_value,
        working,
        SourceLine(STEERING, "return np.divide(streams @"),
    )


def steering_effect(trace: Trace, effects: SteeringEffectsByPrompt, index: int) -> Derivation:
    """Derive the effect of adding a direction after the example of an index, by running the model again."""
    displayed_value = get_element(effects.changes, index)
    prompt = effects.prompts[index]
    logit_differences = []
    for interventions in ((), (effects.edit,)):
        target_logit, contrast_logit = (
            trace.outcome(len(prompt) - 1, compared_id, interventions, token_ids=prompt)[0]
            for compared_id in (effects.token_id, effects.contrast_id)
        )
        logit_differences.append(float(target_logit - contrast_logit))
    before, after = logit_differences
    inputs = tuple(
        Input(name, (), (trace.config.vocab_size,))
        for name in (_("logits of a run with {edit}", edit=effects.edit.location_key), _("logits of a run as it is"))
    )
    numbers = f"{format_number(after)} − {format_number(before)} = {format_number(after - before)}"
    working = Calculation(_("changed − unchanged"), lambda: numbers, after - before, inputs)
    return Derivation(
        _("change of the lead"),
        token_formatter(trace)(prompt),
        displayed_value,
        working,
        SourceLine(STEERING, "return self.after - self.before"),
    )
