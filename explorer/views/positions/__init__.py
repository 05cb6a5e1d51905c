"""Positions: how the model knows where a token stands."""

from explorer.explain.analysed.attention import changed_weight
from explorer.language import N_, _
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import change
from explorer.views.checks import compared
from explorer.views.positions import rope
from explorer.views.positions import vectors as position_vectors
from explorer.views.view import Panel, View
from explorer.views.what_ifs import BASE, ROTATION_OFF, ROTATION_SHIFT, VECTOR_SHIFT, VECTORS_OFF
from model.config import ModelConfig


def formula(trace: Trace, selection: Selection) -> str:
    kind = rope if trace.config.position == "rope" else position_vectors
    formula = kind.formula(trace, selection)
    if not trace.baseline:
        return formula
    return f"{formula}\n{change.effect(Comparison.with_unchanged(trace), selection)}"


def otherwise(config: ModelConfig) -> str:
    return _(
        "Nothing tells this model where a token stands, so there is nothing to draw: all it can go by is that each "
        "token sees only itself and those before it (the causal mask)."
    )


VIEW = View(
    name="positions",
    title=N_("Positions"),
    words=N_(
        "Attention by itself sees which tokens there are and not their order, so the model is told where each stands. "
        "Either each pair of dimensions of a query or key is turned like the hand of a clock, further for later "
        "positions (rotary positions, RoPE), or a vector that stands for the position is added to the token’s own "
        "before the first layer: waves (sinusoidal positions), or numbers that were learned. "
        "Choose two tokens to see what their distance does."
    ),
    formula=formula,
    needs=(),
    needs_one_of=("rope.angles", "position_embed"),
    otherwise=otherwise,
    controls=("layer", "head", "query", "key"),
    what_ifs=(ROTATION_SHIFT, BASE, ROTATION_OFF, VECTOR_SHIFT, VECTORS_OFF),
    panels=(
        Panel(
            name="pattern_change",
            title=N_("What the change did to the chosen head's pattern: changed − unchanged weights"),
            draw=lambda runs, s: change.patterns(runs, s.layer, s.head, s.query, s.key),
            compares="unchanged",
            selects={"x": "key", "y": "query"},
            mark=compared("blocks.{layer}.attn.pattern"),
            inspect=lambda runs, s, point: changed_weight(runs, s.layer, s.head, point.row, point.column),
            height=420,
            width="half",
        ),
        Panel(
            name="next_token_change",
            title=N_("What it did to the next token after the query"),
            draw=lambda runs, s: change.next_tokens(runs, s.query),
            inspect=change.inspect_next_token,
            compares="unchanged",
            mark=compared("logits"),
            height=420,
            width="half",
        ),
        *rope.PANELS,
        *position_vectors.PANELS,
    ),
)
