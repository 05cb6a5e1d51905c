"""Positions view: how the model encodes positions."""

from explorer.analysis.intervention_effects import weight_change
from explorer.analysis.positions import (
    main_pair,
    position_cosines,
    rotation_angles,
    rotation_effects,
    score_by_pair,
    score_by_unrotated_pair,
)
from explorer.explain.notation import format_number, quote_token, quote_token_in_text
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.intervention_controls import BASE, POSITION_VECTORS_OFF, ROTATION_OFF, ROTATION_SHIFT, VECTOR_SHIFT
from explorer.views.positions import position_vectors, rope
from explorer.views.run_difference_figures import (
    inspect_next_token_probability,
    intervention_summary,
    next_token_comparison,
    pattern_change_map,
)
from explorer.views.verification import verify_comparison
from explorer.views.view import Panel, View
from model.config import ModelConfig


def describe_positions(trace: Trace, selection: Selection) -> str:
    """Return the formula of the model's kind of positions, with the interventions' effect if there are any."""
    has_rope = trace.config.position == "rope"
    describe = rope.describe_rotation if has_rope else position_vectors.describe_position_vectors
    formula = describe(trace, selection)
    if not trace.baseline:
        return formula
    return f"{formula}\n{intervention_summary(Comparison.with_unchanged(trace), selection)}"


def positions_sentence(trace: Trace, selection: Selection) -> str:
    """Return how far RoPE rotates the selected query and key, or how alike their position vectors are."""
    query, key = selection.query, selection.key
    is_rope = trace.config.position == "rope"
    quote = quote_token_in_text if is_rope else lambda tokens, position: quote_token(tokens[position])
    names = {"query": quote(trace.tokens, query), "key": quote(trace.tokens, key)}
    if is_rope:
        cell = (trace, selection.layer, selection.head, query, key)
        pair = main_pair(*cell)
        angles = rotation_angles(trace, selection.layer)[:, pair]
        names |= {"pair": pair, "angle": format_number(angles[query]), "key_angle": format_number(angles[key])}
        if query == key:
            rotated = _("RoPE rotates pair {pair} of {query} by {angle} rad.", **names)
        else:
            rotated = _("RoPE rotates pair {pair} of {query} by {angle} rad, of {key} by {key_angle} rad.", **names)
        if not rotation_effects(*cell).any():
            return f"{rotated} {translate(NO_CHANGE)}"
        before, after = (format_number(parts(*cell)[pair]) for parts in (score_by_unrotated_pair, score_by_pair))
        return f"{rotated} {translate(LARGEST_CHANGE, before=before, after=after)}"
    elif query == key:
        rotated = _("Each position adds a vector: {query} has that of position {position}.", position=query, **names)
    else:
        rotated = _(
            "Each position adds a vector: those of {query} ({position}) and {key} ({key_position}) have cosine "
            "{cosine}.",
            position=query,
            key_position=key,
            cosine=format_number(position_cosines(trace)[query, key]),
            **names,
        )
    return f"{rotated} {translate(NEXT_STEP)}"


LARGEST_CHANGE = N_("Its part of the score changes most: {before} → {after}.")
NO_CHANGE = N_("Both turn alike: RoPE does not change the score.")
NEXT_STEP = N_("Choose two tokens.")


def unavailable_reason(config: ModelConfig) -> str:
    """Return why the view has nothing to show."""
    return _(
        "This model has no positions, so there is nothing to draw. It knows only that each token sees itself and those "
        "before it (the causal mask)."
    )


VIEW = View(
    name="positions",
    title=N_("Positions"),
    group="components",
    order=40,
    former_names=("rope",),
    description=N_(
        "How the model knows the order: queries and keys are rotated (RoPE), or a vector is added for each position. "
        "Choose two tokens."
    ),
    sentence=positions_sentence,
    formula=describe_positions,
    required_taps=(),
    required_any_tap=("rope.angles", "position_embed"),
    unavailable_message=unavailable_reason,
    controls=("query", "key", "layer", "head"),
    intervention_controls=(ROTATION_SHIFT, BASE, ROTATION_OFF, VECTOR_SHIFT, POSITION_VECTORS_OFF),
    code=("blocks.{layer}.attn:rotate", "rope", "position_embedding"),
    code_lines=(
        "torch.stack((angles.sin()",
        "return self.weight[",
        "torch.cat((a * cos",
        "torch.stack((a * cos",
        "return x",
    ),
    panels=(
        Panel(
            name="pattern_change",
            title=N_("What the change did to the chosen head’s pattern: changed − unchanged weights"),
            heading=N_("Layer {layer} head {head}: changed − unchanged weights"),
            draw=lambda runs, s: pattern_change_map(runs, s.layer, s.head, s.query, s.key),
            compared_run="unchanged",
            click_selects={"x": "key", "y": "query"},
            verify=verify_comparison("blocks.{layer}.attn.pattern"),
            inspect=lambda runs, s, point: weight_change(runs, s.layer, s.head, point.row, point.column),
            height=420,
            width="half",
        ),
        Panel(
            name="next_token_change",
            title=N_("What it did to the next token after the query"),
            draw=lambda runs, s: next_token_comparison(runs, s.query),
            inspect=inspect_next_token_probability,
            compared_run="unchanged",
            verify=verify_comparison("logits"),
            height=420,
            width="half",
        ),
        *rope.PANELS,
        *position_vectors.PANELS,
    ),
)
