"""Experiments: change a part of the model and see what follows."""

from explorer.analysis.residual import stages
from explorer.explain.analysed.attention import changed_weight
from explorer.explain.analysed.change import attention_elsewhere, run_again, stream_moved, surprisal_moved, without
from explorer.explain.derivation import Derivation
from explorer.explain.point import Point
from explorer.language import N_, _
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import change
from explorer.views.checks import Mark, compared, worked_out
from explorer.views.experiments.ablation_map import heads, sublayers
from explorer.views.experiments.effects import other_heads, spread, text_change
from explorer.views.experiments.formula import formula, unchanged
from explorer.views.experiments.stand_ins import grown_heads, grown_parts, inspect_grown_head, inspect_grown_part
from explorer.views.experiments.together import MARK_OF_TOGETHER, inspect_together, together
from explorer.views.explained import PARTS, explained_token
from explorer.views.view import Panel, View
from explorer.views.what_ifs import (
    BASE,
    DROP,
    FEED_FORWARD,
    GATE,
    HEAD,
    HEADS,
    HIDDEN,
    MASK,
    MEAN,
    NEURON,
    NORMS,
    ROTATION_OFF,
    ROTATION_SHIFT,
    TAKEN_FEED_FORWARD,
    TAKEN_HEAD,
    TAKEN_HEADS,
    TAKEN_MEAN,
    TAKEN_NEURON,
    TAKEN_STREAM,
    TOWARDS,
    VECTOR_SHIFT,
    WITHOUT,
)

ADD_UP = {  # measure of a next token -> of what the panel is
    "probability": N_("Do the effects add up? The explained token’s probability"),
    "logit": N_("Do the effects add up? The explained token’s logit"),
}
MARK_OF_GROWN = compared(*PARTS, "logits")
AGAIN = (
    N_("log₂ p, run again with nothing silenced, against the captured logits"),
    lambda trace, s: run_again(unchanged(trace), s.query, explained_token(trace, s)),
)


def mark_of_ablation(trace: Trace, selection: Selection) -> Mark:
    return worked_out("logits", against=AGAIN)(unchanged(trace), selection)


def inspect_head(trace: Trace, selection: Selection, point: Point) -> Derivation:
    run = unchanged(trace)
    if point.column >= run.config.num_heads:
        raise NoSuchPoint(_("there is no head {head}", head=point.column))
    return without(run, selection.query, explained_token(trace, selection), point.column, point.row)


def inspect_sublayer(trace: Trace, selection: Selection, point: Point) -> Derivation:
    layer, part = divmod(point.of("item"), 2)
    run = unchanged(trace)
    return without(run, selection.query, explained_token(trace, selection), run.config.num_heads + part, layer)


VIEW = View(
    name="experiments",
    title=N_("Experiments"),
    words=N_(
        "What is a part of the model good for? Take it away and see (ablation): each cell below is one head silenced "
        "alone, and by how many bits that changes the log-probability of the explained token, blue where it needs the "
        "head. Choose a cell, then silence, weaken or strengthen that head with its slider, or change something else: "
        "the model as it was is kept beside the changed one, to compare. A click with Shift, or +, silences "
        "one more: whether effects add up, and what stands in for what is silent, is seen below."
    ),
    formula=formula,
    needs=("blocks.*.attn.pattern", "blocks.*.attn.z", "blocks.*.ffn.hidden", "blocks.*.resid_post", "logits"),
    otherwise=lambda config: _("Too little was captured of this model to change it."),
    controls=("query", "key", "target", "layer", "head", "neuron"),
    what_ifs=(
        *(HEAD, HEADS, FEED_FORWARD, NEURON, MEAN),
        *(TAKEN_HEAD, TAKEN_MEAN, TAKEN_HEADS, TAKEN_FEED_FORWARD, TAKEN_NEURON, TAKEN_STREAM),
        *(MASK, DROP, GATE, HIDDEN, TOWARDS, WITHOUT),
        *(*NORMS, ROTATION_SHIFT, VECTOR_SHIFT, BASE, ROTATION_OFF),
    ),
    panels=(
        Panel(
            name="heads",
            title=N_("Each head silenced alone: change of the explained token’s log₂ probability"),
            draw=lambda trace, s: heads(
                unchanged(trace), s.query, explained_token(trace, s), s.layer, s.head, trace.edits
            ),
            selects={"x": "head", "y": "layer"},
            mark=mark_of_ablation,
            inspect=inspect_head,
            width="half",
        ),
        Panel(
            name="next_token_change",
            title=N_("What the change did to the next token after the query"),
            draw=lambda runs, s: change.next_tokens(runs, s.query),
            inspect=change.inspect_next_token,
            compares="unchanged",
            mark=compared("logits"),
            width="half",
        ),
        Panel(
            name="sublayers",
            title=N_("All heads of a layer silenced, or its feed-forward"),
            draw=lambda trace, s: sublayers(unchanged(trace), s.query, explained_token(trace, s)),
            inspect=inspect_sublayer,
            selects={"customdata": "layer"},
            mark=mark_of_ablation,
            width="half",
        ),
        *(
            Panel(
                name=f"together_{measure}",
                title=title,
                draw=lambda runs, s, measure=measure: together(runs, s.query, explained_token(runs.trace, s), measure),
                compares="unchanged",
                mark=MARK_OF_TOGETHER,
                inspect=lambda runs, s, point, measure=measure: inspect_together(
                    runs, s.query, explained_token(runs.trace, s), measure, point
                ),
                width="half",
            )
            for measure, title in ADD_UP.items()
        ),
        Panel(
            name="grown_heads",
            title=N_("Who stands in? By how much more each head adds to the explained logit itself"),
            draw=grown_heads,
            compares="unchanged",
            selects={"x": "head", "y": "layer"},
            mark=MARK_OF_GROWN,
            inspect=inspect_grown_head,
            width="half",
        ),
        Panel(
            name="grown_parts",
            title=N_("The same of all parts of the logit"),
            draw=grown_parts,
            compares="unchanged",
            selects={"customdata": "layer"},
            mark=MARK_OF_GROWN,
            inspect=inspect_grown_part,
            width="half",
        ),
        Panel(
            name="spread",
            title=N_("How far the change moved each token’s residual stream, from the embedding down"),
            draw=lambda runs, s: spread(runs, s.query),
            compares="unchanged",
            selects={"x": "query", "customdata": "layer"},
            mark=lambda runs, s: compared(*(stage.tap for stage in stages(runs.trace)))(runs, s),
            inspect=lambda runs, s, point: stream_moved(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="other_heads",
            title=N_("Which heads look elsewhere because of it"),
            draw=lambda runs, s: other_heads(runs, s.layer, s.head),
            compares="unchanged",
            selects={"x": "head", "y": "layer"},
            mark=compared("blocks.*.attn.pattern"),
            inspect=lambda runs, s, point: attention_elsewhere(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="pattern_change",
            title=N_("The chosen head’s pattern: changed − unchanged weights"),
            draw=lambda runs, s: change.patterns(runs, s.layer, s.head, s.query, s.key),
            compares="unchanged",
            selects={"x": "key", "y": "query"},
            mark=compared("blocks.{layer}.attn.pattern"),
            inspect=lambda runs, s, point: changed_weight(runs, s.layer, s.head, point.row, point.column),
            width="half",
        ),
        Panel(
            name="text_change",
            title=N_("Which tokens of the text it made harder (up) or easier to predict"),
            draw=lambda runs, s: text_change(runs, s.query),
            inspect=lambda runs, s, point: surprisal_moved(runs, point.column),
            compares="unchanged",
            selects={"x": "query"},
            mark=compared("logits"),
            height=300,
            min_width=640,
        ),
    ),
)
