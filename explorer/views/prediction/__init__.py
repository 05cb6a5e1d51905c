"""Prediction view: the components and depths that make a next token probable."""

from explorer.analysis.direct_logit_attribution import (
    component_contribution,
    direct_logit_attribution,
    head_contribution,
    logit_components,
)
from explorer.analysis.logit_lens import LENSES, lens_cell
from explorer.analysis.next_token import (
    actual_token_probability,
    next_token_distribution,
    prediction_measure,
    token_rank,
)
from explorer.analysis.residual import compute_norm_divisor
from explorer.analysis.token_contributions import rollout_weight
from explorer.architecture.formulas import softcap_formula
from explorer.architecture.residual_stream import has_final_norm, norm_input_tap
from explorer.explain.captured.formulas import norm_kinds
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_number, format_six_digits, quote_token
from explorer.state.selection import Selection, SelectionField
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.labels import (
    PARTS,
    SUM_CHECK,
    contribution_sum_text,
    logit_label,
    target_and_contrast,
    target_token,
)
from explorer.views.prediction.contributions import (
    HEADS_FIGURE,
    PARTS_FIGURE,
    SOURCES_FIGURE,
    VERIFY_CONTRIBUTIONS,
    component_bars,
    head_contribution_map,
    inspect_source,
    inspect_token_contribution,
    source_bars,
    subtract_component_bars,
    token_contribution_bars,
)
from explorer.views.prediction.logit_lens import (
    ACTUAL_FIGURE,
    LENS_FIGURE,
    PATH_FIGURE,
    ROLLOUT_FIGURE,
    actual_token_plot,
    lens_map,
    lens_sentence,
    rollout_bars,
    select_common_token,
    subtract_lenses,
    token_trajectory,
)
from explorer.views.two_run_figures import share_scale
from explorer.views.verification import VERIFY_LENS, verify_derived
from explorer.views.view import Panel, TwoRunRenderer, View


def describe_prediction(trace: Trace, selection: Selection) -> str:
    """Return the target's probability, logit and contributions, in numbers."""
    query = selection.query
    token_id, contrast_id = target_and_contrast(trace, selection)
    contributions = direct_logit_attribution(trace, query, token_id, contrast_id)
    logit_name = next_token_distribution(trace, query).plain
    lines = [
        _(
            "after {query} ({position}): the model’s probability of {token} = e^logit / Σ e^logits = {probability}, "
            "rank {rank:,}",
            query=quote_token(trace.tokens[query]),
            position=query,
            token=quote_token(trace.vocabulary[token_id]),
            probability=format_number(logit_name[token_id]),
            rank=token_rank(trace, query, token_id),
        ),
        (
            f"{logit_label(trace, token_id, contrast_id)} = "
            f"{contribution_sum_text(trace, contributions)} = {format_six_digits(contributions.total)}"
        ),
        _(
            "captured {captured}, off by {error}; {norms}",
            captured=format_six_digits(contributions.logit),
            error=format_number(contributions.error),
            norms=norm_treatment_text(trace, query),
        ),
    ]
    if cap := trace.config.logit_cap:
        note = _(
            "a logit is {capped}, u what the unembedding gives; each part is multiplied by the whole’s logit / u",
            capped=softcap_formula("u", cap),
        )
        lines.append(note)
    if trace.config.tie_embeddings:
        lines.append(
            _(
                "embedding and unembedding are one table here, so that before the first block most tokens predict "
                "themselves"
            )
        )
    return "\n".join(lines)


def norm_treatment_text(trace: Trace, query: int) -> str:
    """Describe how the lens and the contributions treat the model's norms."""
    if not has_final_norm(trace.config):
        return _(
            "each part goes through every norm after it, divided by what the whole was\n"
            "the lens reads the stream as each norm leaves it, as the unembedding does in the end (post-norm)"
        )
    scale = compute_norm_divisor(trace, trace[norm_input_tap(trace.config, "final_norm")][query], "final_norm", query)
    return translate(THROUGH_FINAL_NORM[str(norm_kinds(trace, "final_norm", query))], scale=format_number(scale))


THROUGH_FINAL_NORM = {
    "layernorm": N_("each part goes through the final norm, divided by the whole’s √(var x + ε) = {scale}"),
    "rmsnorm": N_("each part goes through the final norm, divided by the whole’s √(mean x² + ε) = {scale}"),
    "none": N_("each part goes through the final norm, which was made to divide nothing"),
}


VERIFY_COMPONENTS = verify_derived(*PARTS, "logits", against=SUM_CHECK)


def inspect_lens(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked cell of the logit lens."""
    return lens_cell(trace, point.row, point.column, target_token(trace, selection), selection.option("lens"))


def inspect_trajectory(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked point of a token's trajectory over the depths."""
    tokens = [token_id for token_id in target_and_contrast(trace, selection) if token_id is not None]
    token_id = get_item(tokens, point.coordinate("curve"))
    return lens_cell(trace, point.coordinate("item"), selection.query, token_id, "target")


def inspect_rollout(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked weight of the attention rollout."""
    return rollout_weight(trace, selection.query, get_item(range(selection.query + 1), point.column))


def inspect_component(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked component's contribution."""
    component, layer = get_item(logit_components(trace), point.coordinate("item"))
    return component_contribution(trace, selection.query, *target_and_contrast(trace, selection), component, layer)


def inspect_actual_token(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked probability or rank of the token that follows."""
    position = point.coordinate("item")
    return (
        prediction_measure(trace, position + 1, "rank")
        if point.coordinate("curve")
        else actual_token_probability(trace, position)
    )


# The measure that colours the logit lens.
LENS_FIELD = SelectionField("lens", "probability", N_("colour"), LENSES)

VIEW = View(
    name="prediction",
    title=N_("Prediction"),
    group="prediction",
    order=80,
    fields=(LENS_FIELD,),
    description=N_(
        "What would the model say if it stopped early? Each cell is the likeliest next token at that depth (the logit "
        "lens)."
    ),
    sentence=lens_sentence,
    formula=describe_prediction,
    required_taps=(
        *("embed", "blocks.*.resid_post", "blocks.*.attn.pattern", "blocks.*.attn.z", "blocks.*.ffn.out", "logits"),
        "lm_head.weight",
    ),
    unavailable_message=lambda config: _("Too little was captured of this model to follow its prediction."),
    controls=("query", "target", "rival", "lens"),
    code=("lm_head", "final_norm", "model.generation.sampling:sampling_stages"),
    code_lines=("return F.linear(",),
    panels=(
        Panel(
            name="lens",
            template=LENS_FIGURE,
            two_run_renderer=TwoRunRenderer(share_scale, subtract_lenses),
            select_for_difference=select_common_token,
            title=N_("Likeliest next token by depth (logit lens)"),
            draw=lambda trace, s: lens_map(trace, s.query, target_token(trace, s), s.option("lens")),
            click_selects={"x": "query"},
            verify=VERIFY_LENS,
            inspect=inspect_lens,
            height=480,
            min_width=600,
        ),
        Panel(
            name="path",
            template=PATH_FIGURE,
            title=N_("The explained token’s probability, by depth"),
            heading=N_("The probability of {target}, depth by depth"),
            draw=lambda trace, s: token_trajectory(trace, s.query, *target_and_contrast(trace, s)),
            inspect=inspect_trajectory,
            verify=VERIFY_LENS,
            height=320,
            width="half",
        ),
        Panel(
            name="rollout",
            template=ROLLOUT_FIGURE,
            title=N_("Where it came from: attention rollout"),
            draw=lambda trace, s: rollout_bars(trace, s.query, s.key),
            inspect=inspect_rollout,
            click_selects={"x": "key"},
            verify=verify_derived("blocks.*.attn.pattern"),
            height=320,
            width="half",
        ),
        Panel(
            name="parts",
            template=PARTS_FIGURE,
            two_run_renderer=TwoRunRenderer(share_scale, subtract_component_bars),
            title=N_("Direct logit attribution: what each part added"),
            heading=N_("What each part added to {logit} (direct logit attribution)"),
            draw=lambda trace, s: component_bars(trace, s.query, *target_and_contrast(trace, s), s.layer),
            inspect=inspect_component,
            click_selects={"customdata": "layer"},
            verify=VERIFY_COMPONENTS,
            height=360,
            width="half",
        ),
        Panel(
            name="heads",
            template=HEADS_FIGURE,
            title=N_("Attention’s part of the logit, head by head"),
            heading=N_("Attention’s part of {logit}, head by head"),
            draw=lambda trace, s: head_contribution_map(
                trace, s.query, *target_and_contrast(trace, s), s.layer, s.head
            ),
            click_selects={"x": "head", "y": "layer"},
            verify=VERIFY_COMPONENTS,
            inspect=lambda trace, s, point: head_contribution(
                trace, s.query, *target_and_contrast(trace, s), point.row, point.column
            ),
            height=360,
            width="half",
        ),
        Panel(
            name="by_source",
            template=SOURCES_FIGURE,
            title=N_("Which word mattered? What heads take from it"),
            heading=N_("Which word mattered? What all heads take from each token for {logit}"),
            draw=source_bars,
            click_selects={"x": "key"},
            verify=verify_derived(*PARTS, "blocks.*.attn.pattern", "blocks.*.attn.v", "logits", against=SUM_CHECK),
            inspect=inspect_source,
            height=360,
            min_width=600,
        ),
        Panel(
            name="by_token",
            title=N_("What each token contributes, by four methods"),
            heading=N_("What each token contributes to {logit}, by four methods"),
            draw=token_contribution_bars,
            click_selects={"x": "key"},
            verify=VERIFY_CONTRIBUTIONS,
            inspect=inspect_token_contribution,
            height=620,
            min_width=600,
        ),
        Panel(
            name="actual",
            template=ACTUAL_FIGURE,
            title=N_("The token that comes next: probability and rank"),
            draw=lambda trace, s: actual_token_plot(trace, s.query),
            inspect=inspect_actual_token,
            click_selects={"x": "query"},
            verify=verify_derived("logits"),
            height=360,
            min_width=600,
        ),
    ),
)
