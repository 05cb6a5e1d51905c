"""Compare view: the differences of two runs."""

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.next_token import kl_divergence, mean_text_loss, text_loss
from explorer.analysis.run_difference import (
    first_difference,
    head_attention_distance,
    head_distances,
    next_token_probabilities,
    next_token_probability,
    residual_distance,
    surprisal_gap,
)
from explorer.architecture.residual_stream import stream_tap_patterns
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import (
    format_factor,
    format_number,
    format_signed,
    format_six_digits,
    join_names,
    quote_token,
)
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.tracing.training_history import model_name, step_label, training_step
from explorer.translations import N_, _
from explorer.views import graph_objects as go
from explorer.views.labels import NORMS, PARTS, logit_label, target_and_contrast
from explorer.views.run_difference_figures import (
    attribution_arguments_of_both_runs,
    contribution_difference_bars,
    inspect_component_difference,
    inspect_next_token_probability,
    likeliest_ids,
    next_token_comparison,
    raise_if_unaligned,
    residual_distance_map,
    surprisal_difference_bars,
)
from explorer.views.shared_plots import head_map
from explorer.views.style import figure, label, named_axis, row_line
from explorer.views.two_run_figures import NoDifferenceError, likeliest_tokens_sentence, replaced_word_sentence
from explorer.views.verification import verify_comparison
from explorer.views.view import Panel, View


def head_attention_difference_map(comparison: Comparison, layer: int, head: int) -> go.Figure:
    """Draw the distance of every head's attention in A and B; row = layer.

    Raises:
        NoDifferenceError: the models have different numbers of layers or heads, or no tokens are aligned.
    """
    shapes = {(run.config.num_layers, run.config.num_heads) for run in comparison.runs}
    if len(shapes) > 1:
        raise NoDifferenceError(_("A and B have different numbers of layers or heads. View them one at a time."))
    raise_if_unaligned(comparison)
    values = head_distances(comparison)  # (L, H)
    largest_index = most_different_head(values)
    return head_map(
        values,
        (layer, head),
        colours=(0, float(values[largest_index]) or 1),
        scale=_("Jensen-Shannon distance, mean of queries"),
        hover=_("layer %{y} head %{x}<br>distance %{z:.3g}<extra></extra>"),
        format_cell="{:.2f}".format,
        alt=_(
            "How different the patterns of {count} heads are in A and B, from 0 (the same) to 1: most, {distance}, "
            "layer {layer} head {head}.",
            count=values.size,
            distance=format_number(values[largest_index]),
            layer=largest_index[0],
            head=largest_index[1],
        ),
    )


def most_different_head(distances: np.ndarray) -> tuple[int, int]:
    """Return layer and head of the largest distance."""
    layer, head = np.unravel_index(np.nanargmax(distances), distances.shape)
    return int(layer), int(head)


def comparison_sentence(comparison: Comparison, selection: Selection) -> str:
    """Return the likeliest next tokens of both runs, and which head looks most differently, if heads compare."""
    sentence = likeliest_tokens_sentence(comparison, selection)
    if len({(run.config.num_layers, run.config.num_heads) for run in comparison.runs}) > 1:
        return sentence
    distances = head_distances(comparison)
    if not np.nan_to_num(distances).any() or replaced_word_sentence(comparison):  # which stands before
        return sentence
    layer, head = most_different_head(distances)
    difference = _(
        "Layer {layer} head {head} differs most (Jensen-Shannon {distance} of 1).",
        layer=layer,
        head=head,
        distance=f"{distances[layer, head]:.2f}",
    )
    return f"{sentence} {difference}"


DIFFERENCE_SHADE = 0.12  # of the full colour, on which words are read
COLUMNS = ("A", "B", "A − B")
LOSS_ROW, NUM_FACTS, NUM_TOKENS = 5, 6, 8  # of the table: the only computed fact; facts and tokens


def run_facts(trace: Trace) -> dict[str, str]:
    """Return facts of a run by their names: its model, tokens, changes and loss."""
    loss = mean_text_loss(trace)
    return {
        _("model"): trained_model_name(trace),
        _("layers"): str(trace.config.num_layers),
        _("heads per layer"): str(trace.config.num_heads),
        _("tokens"): f"{len(trace):,}",
        _("changes"): str(len(trace.edits)),
        _("mean loss per token, nats"): "–" if np.isnan(loss) else format_number(loss),
    }


def trained_model_name(trace: Trace) -> str:
    """Return the name of a run's model, with its training step if it has one; "–" if it is unknown."""
    if not trace.training:
        return "–"
    checkpoint = trace.training.checkpoint
    step = step_label(checkpoint) if training_step(checkpoint) is not None else ""
    return " · ".join(filter(None, (model_name(checkpoint), step)))


def facts_table(comparison: Comparison, query: int) -> go.Figure:
    """Draw facts of A and of B in two columns, and the probabilities of next tokens with their difference.

    Facts that differ are coloured, probabilities by their size.
    """
    facts_a, facts_b = (run_facts(run) for run in comparison.runs)
    probs_a, probs_b = next_token_probabilities(comparison, query)
    token_ids = likeliest_ids(probs_a, probs_b)[:NUM_TOKENS]
    loss = mean_text_loss(comparison.trace) - mean_text_loss(comparison.other)
    rows = [(facts_a[name], facts_b[name], "") for name in facts_a]
    rows[LOSS_ROW] = (*rows[LOSS_ROW][:2], "" if np.isnan(loss) else format_signed(loss))
    rows += [_probability_cells(float(probs_a[i]), float(probs_b[i])) for i in token_ids]
    token_names = [quote_token(comparison.trace.vocabulary[i]) for i in token_ids]
    differing = [name for name in facts_a if facts_a[name] != facts_b[name]]
    fact_shades = [[float(name in differing) * DIFFERENCE_SHADE] * 2 + [0.0] for name in facts_a]
    token_shades = [[probs_a[i] / 2, np.nan_to_num(probs_b[i]) / 2, 0.0] for i in token_ids]
    names = [*facts_a, *(label(comparison.trace.vocabulary[i]) for i in token_ids)]
    return figure(
        go.Heatmap(
            x=COLUMNS,
            z=np.array(fact_shades + token_shades),
            zmin=0,
            zmax=1,
            showscale=False,
            text=rows,
            texttemplate="%{text}",
            hovertext=[[name] * 3 for name in names],
            hovertemplate=_("%{hovertext} of %{x}: %{text}<extra></extra>"),
            xgap=1,
            ygap=1,
        ),
        alt=_(
            "{count} facts of A and B; what differs: {names}. Then the next tokens {tokens} with their probabilities.",
            count=len(facts_a),
            names=join_names(differing) or "–",
            tokens=join_names(token_names),
        ),
        xaxis={"side": "top", "showgrid": False},
        yaxis=named_axis(names, autorange="reversed", zeroline=False, tickfont={"size": 12}),
        shapes=[row_line(NUM_FACTS - 0.5)],
    )


def _probability_cells(a: float, b: float) -> tuple[str, str, str]:
    if np.isnan(b):
        return format_number(a), "–", ""
    return format_number(a), format_number(b), format_signed(a - b)


def inspect_fact(
    comparison: Comparison, query: int, point: ClickedPoint
) -> Derivation | tuple[Derivation | None, ...] | None:
    """Derive the clicked loss or probability, of a difference both; None for what is not computed."""
    token_ids = likeliest_ids(*next_token_probabilities(comparison, query))[:NUM_TOKENS]
    row = get_item((*[None] * NUM_FACTS, *token_ids), point.row)
    get_item(COLUMNS, point.column)
    if row is None and point.row != LOSS_ROW:
        return None
    derivations = [
        text_loss(run) if row is None else next_token_probability(comparison, query, int(row), run)
        for run in comparison.runs
    ]
    return get_item((*derivations, tuple(filter(None, derivations)) or None), point.column)


def describe_differences(comparison: Comparison, selection: Selection) -> str:
    """Describe the first difference of the runs and its effect on the next token."""
    return "\n".join(
        filter(None, [first_difference_text(comparison), prediction_difference_text(comparison, selection)])
    )


def first_difference_text(comparison: Comparison) -> str:
    """Return a sentence on the first value in which two runs differ."""
    difference = first_difference(comparison)
    if not comparison.has_aligned_tokens:
        return _("No token of B stands for one of A: they cannot be compared place by place.")
    if difference is None:
        return _("A and B are the same at all tokens that stand beside each other, but for rounding.")
    (tokens_a, tokens_b) = (run.tokens for run in comparison.runs)
    return _(
        "A and B first differ at {tap}, at {token} ({position}) beside {other} ({partner}), by up to {largest}. All "
        "that is computed before, and this value at earlier tokens, is the same but for rounding.",
        tap=difference.tap,
        token=quote_token(tokens_a[difference.position]),
        position=difference.position,
        other=quote_token(tokens_b[difference.partner]),
        partner=difference.partner,
        largest=format_number(difference.largest),
    )


def prediction_difference_text(comparison: Comparison, selection: Selection) -> str:
    """Compare the target token's probability and logit, and the next-token distributions, of A and B."""
    trace = comparison.trace
    probs_a, probs_b = next_token_probabilities(comparison, selection.query)
    token_id, contrast_id = target_and_contrast(trace, selection)
    lines = [
        _(
            "probability of {token} after {query} ({position}): {a} in A, {b} in B",
            token=quote_token(trace.vocabulary[token_id]),
            query=quote_token(trace.tokens[selection.query]),
            position=selection.query,
            a=format_number(probs_a[token_id]),
            b=format_number(probs_b[token_id]),
        )
    ]
    if not np.isnan(probs_b[token_id]):
        a, b = (
            direct_logit_attribution(*arguments)
            for arguments in attribution_arguments_of_both_runs(comparison, selection)
        )
        lines.append(
            _(
                "{logit}: {a} in A − {b} in B = {less}",
                logit=logit_label(trace, token_id, contrast_id),
                a=format_six_digits(a.logit),
                b=format_factor(b.logit),
                less=format_six_digits(a.logit - b.logit),
            )
        )
    if not np.isnan(probs_b).any():
        bits = {
            "there": format_number(kl_divergence(probs_a, probs_b)),
            "back": format_number(kl_divergence(probs_b, probs_a)),
        }
        lines.append(_("KL(A‖B) = Σ p log₂ (p of A / p of B) = {there} bits, KL(B‖A) = {back} bits", **bits))
    return "\n".join(lines)


VIEW = View(
    name="compare",
    title=N_("Compare"),
    group="try",
    order=120,
    description=N_("Where do two runs differ? Their streams, heads, parts of the logit and next token, A beside B."),
    sentence=comparison_sentence,
    formula=describe_differences,
    is_comparison=True,
    required_taps=("blocks.*.attn.pattern", "blocks.*.resid_post", "logits"),
    unavailable_message=lambda config: _("Too little was captured of this model to compare it."),
    controls=("query", "target", "rival", "layer", "head"),
    panels=(
        Panel(
            name="streams",
            title=N_("How far apart the residual streams are"),
            draw=lambda runs, s: residual_distance_map(runs, s.query),
            compared_run="other",
            click_selects={"x": "query", "customdata": "layer"},
            verify=verify_comparison(stream_tap_patterns),
            inspect=lambda runs, s, point: residual_distance(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="parts",
            title=N_("What each part adds to the logit: A − B"),
            heading=N_("What each part adds to {logit}: A − B"),
            draw=contribution_difference_bars,
            compared_run="other",
            click_selects={"customdata": "layer"},
            verify=verify_comparison(*PARTS, *NORMS, "final_norm", "logits"),
            inspect=inspect_component_difference,
            width="half",
        ),
        Panel(
            name="facts",
            title=N_("A beside B: facts and next tokens"),
            draw=lambda runs, s: facts_table(runs, s.query),
            compared_run="other",
            verify=verify_comparison("logits"),
            inspect=lambda runs, s, point: inspect_fact(runs, s.query, point),
            width="half",
        ),
        Panel(
            name="heads",
            title=N_("How different each head’s attention is"),
            draw=lambda runs, s: head_attention_difference_map(runs, s.layer, s.head),
            compared_run="other",
            click_selects={"x": "head", "y": "layer"},
            verify=verify_comparison("blocks.*.attn.pattern"),
            inspect=lambda runs, s, point: head_attention_distance(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="next_token",
            title=N_("The next token after the query in A and in B"),
            draw=lambda runs, s: next_token_comparison(runs, s.query),
            compared_run="other",
            verify=verify_comparison("logits"),
            inspect=inspect_next_token_probability,
            width="half",
        ),
        Panel(
            name="text",
            title=N_("Which tokens surprise A more or less than B"),
            draw=lambda runs, s: surprisal_difference_bars(runs, s.query),
            compared_run="other",
            click_selects={"x": "query"},
            verify=verify_comparison("logits"),
            inspect=lambda runs, s, point: surprisal_gap(runs, point.column),
            height=300,
            min_width=600,
        ),
    ),
)
