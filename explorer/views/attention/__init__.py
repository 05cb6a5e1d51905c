"""Attention view: the attention patterns of heads, and a table and a map of their scores."""

import numpy as np

from explorer.analysis.attention import (
    PATTERNS,
    attention_cell,
    attention_stage,
    dimension_contribution,
    displayed_weight,
)
from explorer.analysis.direct_logit_attribution import (
    direct_logit_attribution,
    head_contribution,
)
from explorer.analysis.head_scores import (
    HEAD_SCORES,
    ChanceHeadScores,
    chance_head_scores,
    count_scored_queries,
    head_score,
    head_scores,
)
from explorer.architecture.formulas import score_divisor_formula, score_divisor_in_numbers, softcap_formula
from explorer.explain.captured import derive
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import (
    escape_token,
    format_number,
    format_percent,
    format_six_digits,
    join_names,
    quote_token,
    quote_token_in_text,
)
from explorer.state.selection import Selection, SelectionField
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate
from explorer.views import graph_objects as go
from explorer.views.attention.patterns import (
    DIMENSIONS_FIGURE,
    LINES_FIGURE,
    PATTERN_FIGURE,
    ROW_FIGURE,
    STAGES_FIGURE,
    all_head_patterns,
    attention_lines,
    attention_stages,
    pattern_heatmap,
    query_weight_bars,
    score_by_dimension_bars,
)
from explorer.views.intervention_controls import (
    DROP,
    HEAD,
    HEAD_OFF,
    MASK,
    MEAN,
    PATCH_HEAD,
    PATCH_MEAN,
    PATCH_PATTERN,
)
from explorer.views.labels import (
    ATTRIBUTION_TAPS,
    NO_REPEATED_TOKEN,
    PARTS,
    SUM_CHECK,
    chance_hover,
    logit_label,
    score_inputs_text,
    shared_kv_head_text,
    target_and_contrast,
    uniform_score_text,
)
from explorer.views.selection import HEAD_SCORE_FIELD
from explorer.views.style import cell_frame, figure, note_above
from explorer.views.verification import (
    Verification,
    describe_recomputation,
    inspect_captured,
    verify_captured,
    verify_derived,
)
from explorer.views.view import LINES, ROWS, HeadTable, HeadTableColumn, Panel, View
from model.config import ModelConfig


def all_heads_table(trace: Trace, selection: Selection) -> HeadTable:
    """Return every score of every head, and its contribution to the logit, if the run has what that needs."""
    hide_first = selection.first_token == "hidden"
    columns = [
        HeadTableColumn(
            translate(score.label),
            translate(SCORE_DESCRIPTIONS[hide_first], looks=translate(score.description)),
            head_scores(trace, name, hide_first),
        )
        for name, score in HEAD_SCORES.items()
    ]
    if has_contributions(trace):
        columns.append(contribution_column(trace, selection))
    alt = _("{count} scores of each of {heads} heads.", count=len(columns), heads=columns[0].values.size)
    return HeadTable(tuple(columns), alt, measured_queries_text(trace))


def measured_queries_text(trace: Trace) -> str:
    """Return over how many queries of the prompt the scores are means, in a sentence."""
    counts = {name: count_scored_queries(trace, name) for name in HEAD_SCORES}
    most = max(counts.values())
    fewer, too_few = [], []
    for name, count in counts.items():
        if count < most:
            named = too_few if count < MIN_SCORED_QUERIES else fewer
            named.append(_("{score} over {count}", score=translate(HEAD_SCORES[name].label), count=count))
    text = _("Each score is an average over {count} tokens of this prompt.", count=most)
    if fewer:
        others = join_names(fewer)
        text = _("Each score is an average over {count} tokens of this prompt; {others}.", count=most, others=others)
    unreliable = _("Too few to be reliable: {scores}.", scores=join_names(too_few))
    return f"{text} {unreliable}" if too_few else text


MIN_SCORED_QUERIES = 5  # of which a mean says something


SCORE_DESCRIPTIONS = {  # whether the first token is hidden -> description of a score
    False: N_("How much the head {looks}, 0 to 1"),
    True: N_("How much the head {looks}, 0 to 1, the first token left out"),
}


def has_contributions(trace: Trace) -> bool:
    """Return whether the run has all that contributions to a logit are computed from."""
    return all(map(trace.has_tap, ATTRIBUTION_TAPS))


def contribution_column(trace: Trace, selection: Selection) -> HeadTableColumn:
    """Return the column of each head's contribution to the explained token's logit after the query."""
    token_id, contrast_id = target_and_contrast(trace, selection)
    values = direct_logit_attribution(trace, selection.query, token_id, contrast_id).heads  # (L, H)
    description = _(
        "What the head adds to {logit} after {token}",
        logit=logit_label(trace, token_id, contrast_id),
        token=quote_token(trace.tokens[selection.query]),
    )
    limit = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    label = _("adds to the logit of {token}", token=escape_token(trace.vocabulary[token_id]))
    return HeadTableColumn(label, description, values, limit, signed=True)


def verify_head_table(trace: Trace, selection: Selection) -> Verification:
    """Verify the patterns, and the contributions against the logit."""
    verify = VERIFY_WITH_CONTRIBUTIONS if has_contributions(trace) else VERIFY_PATTERNS
    return verify(trace, selection)


VERIFY_PATTERNS = verify_derived("blocks.*.attn.pattern")
VERIFY_WITH_CONTRIBUTIONS = verify_derived("blocks.*.attn.pattern", *PARTS, "logits", against=SUM_CHECK)


def inspect_head_number(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the number in a clicked column of the point's layer and head."""
    names = [*HEAD_SCORES, *[""] * has_contributions(trace)]
    name, layer, head = get_item(names, point.column), point.coordinate("layer"), point.coordinate("head")
    if name:
        return head_score(trace, name, selection.first_token == "hidden", layer, head)
    return head_contribution(trace, selection.query, *target_and_contrast(trace, selection), layer, head)


def head_score_map(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> go.Figure:
    """Draw one of `HEAD_SCORES` for every head: row = layer, column = head; the chosen head framed.

    Scores that do not exceed chance on these tokens are in brackets.
    """
    scores = head_scores(trace, name, hide_first)  # (L, H)
    baseline = chance_head_scores(trace, name, hide_first)
    has_chance = baseline is not None
    exceeds = baseline.is_exceeded(scores) if has_chance else None
    score_name = translate(HEAD_SCORES[name].label)
    fig = figure(
        go.Heatmap(
            z=scores,
            zmin=0,
            zmax=1,
            text=np.where(exceeds, np.char.mod("%.2f", scores), np.char.mod("(%.2f)", scores)) if has_chance else None,
            texttemplate="%{text}" if has_chance and scores.shape[1] <= 12 else None,
            hovertext=chance_hover(baseline, exceeds) if has_chance else None,
            hovertemplate=_("layer %{y} head %{x}<br>score %{z:.3f}<br>%{hovertext}<extra></extra>"),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": translate(HEAD_SCORES[name].title), "side": "right"}},
        ),
        alt=_(
            "The {score} score of {heads} heads, {least} to {most}: how much each {does}. Attention spread evenly "
            "would have {even}; {exceeding} heads score more than chance would give.",
            score=score_name,
            heads=scores.size,
            least=format_number(scores.min()),
            most=format_number(scores.max()),
            does=translate(HEAD_SCORES[name].description),
            even=uniform_score_text(baseline),
            exceeding=exceeds.sum(),
        )
        if has_chance
        else _("No {score} score: {why}.", score=score_name, why=translate(NO_REPEATED_TOKEN)),
        annotations=note_above(score_note(name, baseline)),
        margin={"t": 58},  # two lines below the heading
        xaxis={"title": {"text": head_axis_title(baseline)}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    fig.add_shape(**cell_frame(layer, head))
    if not has_chance:
        fig.add_annotation(text=translate(NO_REPEATED_TOKEN), xref="paper", yref="paper", x=0.5, y=0.5, showarrow=False)
    return fig


def score_note(name: str, baseline: ChanceHeadScores | None) -> str:
    """Return what the drawn score measures, and what brackets mean."""
    note = _("how much each head {looks}", looks=translate(HEAD_SCORES[name].description))
    if baseline is None or baseline.quantiles is None:
        return note
    return _("{note}<br>in brackets: no more than by chance", note=note)


def head_axis_title(baseline: ChanceHeadScores | None) -> str:
    """Return the title of the axis of heads, with the score that uniform attention would have."""
    if baseline is None:
        return _("head")
    return ngettext(
        "head<br>a head that looks at all tokens alike<br>scores {even} here. Measured at {count} token,<br>not at the "
        "first, which sees itself alone",
        "head<br>a head that looks at all tokens alike<br>scores {even} here. Measured at {count} tokens,<br>not at "
        "the first, which sees itself alone",
        baseline.queries,
        even=uniform_score_text(baseline),
    )


CELL = {  # whether scores are capped -> from the products to a weight
    False: N_(
        "{whose}, query {query} ({query_position}) → key {key} ({key_position})\n"
        "score  = q·k / {divisor} = {dot} / {divided_by} = {score}\n"
        "weight = e^(score − max) / Σ e^(scores − max) = {exp_score} / {exp_total} = {weight}\n"
        "{recomputed}"
    ),
    True: N_(
        "{whose}, query {query} ({query_position}) → key {key} ({key_position})\n"
        "score  = q·k / {divisor} = {dot} / {divided_by} = {score}\n"
        "capped = {cap} = {capped}\n"
        "weight = e^(capped − max) / Σ e^(capped − max) = {exp_score} / {exp_total} = {weight}\n"
        "{recomputed}"
    ),
}


def describe_selected_weight(trace: Trace, selection: Selection) -> str:
    """Return the score, weight and output of the selected query and key, in numbers."""
    layer, head, query, key = selection.layer, selection.head, selection.query, selection.key
    if not (
        trace.has_tap("blocks.*.attn.scores") and trace.has_tap("blocks.*.attn.q") and trace.has_tap("blocks.*.attn.k")
    ):
        return _(
            "layer {layer} head {head}, query {query} → key {key}: weight = {weight}",
            layer=layer,
            head=head,
            query=query,
            key=key,
            weight=format_six_digits(trace[f"blocks.{layer}.attn.pattern"][head, query, key]),
        )
    cell = attention_cell(trace, layer, head, query, key)
    whose = _("layer {layer} head {head}", layer=layer, head=head)
    if shared := shared_kv_head_text(trace.config, head):
        whose = _("{whose} (k and v of {shared})", whose=whose, shared=shared)
    cap = trace.config.score_cap
    return translate(
        CELL[cap is not None],
        whose=whose,
        query=quote_token(trace.tokens[query]),
        query_position=query,
        key=quote_token(trace.tokens[key]),
        key_position=key,
        dot=format_six_digits(cell.dot),
        divisor=score_divisor_formula(trace.config),
        divided_by=score_divisor_in_numbers(trace.config),
        score=format_six_digits(cell.score),
        cap=softcap_formula("score", cap) if cap else "",
        capped=format_six_digits(cell.capped),
        exp_score=format_six_digits(cell.exp_score),
        exp_total=format_six_digits(cell.exp_total),
        weight=format_six_digits(cell.weight),
        recomputed=describe_recomputation(
            trace,
            [f"blocks.{layer}.attn.{name}" for name in ("scores", "pattern")],
            (head, query, key),
            N_("recomputed from {vectors}, off by {error}"),
            cell.error,
            vectors=score_inputs_text(trace.config, layer),
        ),
    )


def attention_sentence(trace: Trace, selection: Selection) -> str:
    """Return where the selected head's query looks, how much of it at the selected key, and whether it is ablated."""
    layer, head, query, key = selection.layer, selection.head, selection.query, selection.key
    weights = trace[PATTERN.format(layer=layer)][head, query, : query + 1]
    largest = int(weights.argmax())
    template, num_largest = LOOKS_MOST, int((weights == weights[largest]).sum())
    if query == 0:
        template = LOOKS_AT_ITSELF
    elif num_largest > 1:
        template = LOOKS_EQUALLY
    elif key != largest:
        template = LOOKS_MORE_ELSEWHERE
    looks = translate(
        template,
        layer=layer,
        head=head,
        query=quote_token_in_text(trace.tokens, query),
        key=_name_key(trace, query, key),
        share=format_percent(float(weights[key])),
        most=_name_key(trace, query, largest),
        percent=format_percent(float(weights[largest])),
        count=num_largest,
    )
    if f"blocks.{layer}.attn.z.{head}*zero" in map(str, trace.edits):
        return f"{looks} {translate(IS_SWITCHED_OFF)}"
    return looks if template == LOOKS_MORE_ELSEWHERE else f"{looks} {translate(NEXT_STEP)}"


NEXT_STEP = N_("A cell that you choose shows its numbers.")
IS_SWITCHED_OFF = N_("It is switched off: it looks, but writes nothing.")


def _name_key(trace: Trace, query: int, key: int) -> str:
    """Name the token of a key: by its position, too, where the query sees it twice."""
    if key == query:
        return _("itself")
    return quote_token_in_text(trace.tokens[: query + 1], key)


def attention_difference_sentence(comparison: Comparison, selection: Selection) -> str:
    """Return at which query and key the selected head's weights differ most between A and B; "" without such a head."""
    name, head = PATTERN.format(layer=selection.layer), selection.head
    a, b = comparison.runs
    if name not in a or name not in b or a[name].shape[0] != b[name].shape[0] or not comparison.has_aligned_tokens:
        return ""
    differences = np.nan_to_num(a[name][head] - comparison.aligned_other(name)[head])
    query, key = np.unravel_index(np.abs(differences).argmax(), differences.shape)
    size = float(np.abs(differences[query, key]))
    if size < SMALLEST_DIFFERENCE:
        return translate(SAME_WEIGHTS, layer=selection.layer, head=head)
    return translate(
        A_MORE if differences[query, key] > 0 else B_MORE,
        layer=selection.layer,
        head=head,
        query=_name_in_both(comparison, int(query)),
        key=_name_in_both(comparison, int(key)),
        difference=f"{size:.2f}",
    )


def _name_in_both(comparison: Comparison, position: int) -> str:
    """Name a token of A, and its aligned one of B if that is another."""
    name, other = quote_token_in_text(comparison.trace.tokens, position), comparison.alignment.partners[position]
    token, other_token = comparison.trace.tokens[position], comparison.other.tokens[other]
    return name if token == other_token else _("{token} (in B {other})", token=name, other=quote_token(other_token))


SMALLEST_DIFFERENCE = 0.005  # of weights, which is 0.00 in two decimals
SAME_WEIGHTS = N_("Layer {layer} head {head} has the same weights in A and B, within 0.005.")
A_MORE = N_(
    "Layer {layer} head {head} differs most where {query} looks at {key}: the weight is {difference} larger in A."
)
B_MORE = N_(
    "Layer {layer} head {head} differs most where {query} looks at {key}: the weight is {difference} larger in B."
)

LOOKS_AT_ITSELF = N_("Layer {layer} head {head}: {query} comes first and sees only itself.")
LOOKS_EQUALLY = N_("Layer {layer} head {head}: {query} looks most at {count} tokens, with {percent} each.")
LOOKS_MORE_ELSEWHERE = N_(
    "Layer {layer} head {head}: {query} looks at {key} with {share}, most at {most} with {percent}."
)
LOOKS_MOST = N_("Layer {layer} head {head}: {query} looks most at {most}, with {percent}.")

# Which attention pattern the large figure shows.
PATTERN_FIELD = SelectionField("pattern", "weight", N_("large figure"), PATTERNS)
PATTERN = "blocks.{layer}.attn.pattern"


def verify_patterns(trace: Trace, selection: Selection) -> Verification:
    """Verify the heads' patterns in the selected kind."""
    pattern_kind = selection.option("pattern")
    if pattern_kind == "weight":
        return verify_captured(PATTERN)(trace, selection)
    if pattern_kind in ("chosen_mean", "chosen_max"):
        return verify_derived("blocks.*.attn.pattern")(trace, selection)
    return verify_derived(PATTERN, *["blocks.{layer}.attn.v"] * (pattern_kind == "moved"))(trace, selection)


def query_key_tap_templates(config: ModelConfig) -> list[str]:
    """Return the taps of the queries and keys whose products are the chosen layer's scores."""
    suffix = "_rot" * (config.position == "rope")
    return [f"blocks.{{layer}}.attn.{vector}{suffix}" for vector in "qk"]


def inspect_attention_line(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the weight at a clicked token.

    A token at the left is a query of the chosen key, one at the right a key of the chosen query.
    """
    position = get_item(range(len(trace)), point.row)
    query, key = get_item(((position, selection.key), (selection.query, position)), point.column)
    return derive(trace, PATTERN.format(layer=selection.layer), (selection.head, query, key)) if key <= query else None


VIEW = View(
    name="attention",
    title=N_("Attention"),
    group="components",
    order=30,
    fields=(PATTERN_FIELD, HEAD_SCORE_FIELD),
    description=N_(
        "Each head lets a token take from the tokens before it. Choose a head, then a cell: how much its row takes "
        "from its column."
    ),
    sentence=attention_sentence,
    comparison_sentence=attention_difference_sentence,
    formula=describe_selected_weight,
    required_taps=("blocks.*.attn.pattern",),
    unavailable_message=lambda config: _("This model has no attention."),
    controls=("layer", "head", "query", "key", "pattern", "window", "head_score", "first_token"),
    intervention_controls=(HEAD_OFF, HEAD, MEAN, PATCH_HEAD, PATCH_MEAN, PATCH_PATTERN, MASK, DROP),
    code=("blocks.{layer}.attn", "model.layers.attention:attention_scores", "model.layers.attention:attention_pattern"),
    code_lines=("return torch.softmax(scores + penalty",),
    panels=(
        Panel(
            name="heads",
            title=N_("All heads, a row for each layer"),
            draw=lambda trace, selection: all_head_patterns(trace),
            kind="head_grid",
            is_selection_independent=True,
            verify=verify_captured("blocks.*.attn.pattern"),
            inspect=inspect_captured(PATTERN, "head", "y", "x"),
            click_selects={"layer": "layer", "head": "head", "x": "key", "y": "query"},
            width="half",
        ),
        Panel(
            name="pattern",
            template=PATTERN_FIGURE,
            title=N_("The chosen head: who looks at whom"),
            heading=N_("Layer {layer} head {head}: who looks at whom"),
            draw=lambda trace, s: pattern_heatmap(
                trace, s.layer, s.head, s.query, s.key, s.option("pattern"), s.window, s.selected_heads
            ),
            click_selects={"x": "key", "y": "query"},
            verify=verify_patterns,
            inspect=lambda trace, s, point: displayed_weight(
                trace, s.layer, s.head, point.row, point.column, s.option("pattern"), s.selected_heads
            ),
            height=500,
            width="half",
        ),
        Panel(
            name="row",
            template=ROW_FIGURE,
            title=N_("The chosen query’s weights"),
            heading=N_("Layer {layer} head {head}: the weights of {query}"),
            draw=lambda trace, s: query_weight_bars(trace, s.layer, s.head, s.query, s.key),
            click_selects={"x": "key"},
            verify=verify_captured(PATTERN),
            inspect=inspect_captured(PATTERN, "head", "query", "x"),
            height=260,
        ),
        Panel(
            name="stages",
            template=STAGES_FIGURE,
            no_difference_reason=ROWS,
            title=N_("The chosen query’s numbers, step by step"),
            heading=N_("Layer {layer} head {head}: {query}, step by step"),
            draw=lambda trace, s: attention_stages(trace, s.layer, s.head, s.query, s.key),
            required_taps=("blocks.*.attn.scores", "blocks.*.attn.v"),
            click_selects={"x": "key"},
            verify=verify_captured("blocks.{layer}.attn.scores", PATTERN, "blocks.{layer}.attn.v"),
            inspect=lambda trace, s, point: attention_stage(trace, s.layer, s.head, s.query, point.column, point.row),
            height=320,
            min_width=900,
        ),
        Panel(
            name="dimensions",
            template=DIMENSIONS_FIGURE,
            title=N_("The chosen cell’s score, by dimension"),
            heading=N_("Layer {layer} head {head}: the score of {query} → {key}"),
            draw=lambda trace, s: score_by_dimension_bars(trace, s.layer, s.head, s.query, s.key),
            required_taps=("blocks.*.attn.q", "blocks.*.attn.k"),
            inspect=lambda trace, s, point: dimension_contribution(
                trace, s.layer, s.head, s.query, s.key, point.coordinate("item")
            ),
            verify=verify_derived(query_key_tap_templates, "blocks.{layer}.attn.scores"),
            height=260,
        ),
        Panel(
            name="table",
            title=N_("All heads as a table, sorted by any score"),
            draw=all_heads_table,
            kind="head_table",
            click_selects={"layer": "layer", "head": "head"},
            verify=verify_head_table,
            inspect=inspect_head_number,
        ),
        Panel(
            name="scores",
            title=N_("What each head does"),
            chooser="head_score",
            draw=lambda trace, s: head_score_map(
                trace, s.option("head_score"), s.first_token == "hidden", s.layer, s.head
            ),
            click_selects={"x": "head", "y": "layer"},
            verify=verify_derived("blocks.*.attn.pattern"),
            inspect=lambda trace, s, point: head_score(
                trace, s.option("head_score"), s.first_token == "hidden", point.row, point.column
            ),
            height=370,
            width="half",
        ),
        Panel(
            name="lines",
            template=LINES_FIGURE,
            no_difference_reason=LINES,
            title=N_("The chosen head as lines, from query to key"),
            heading=N_("Layer {layer} head {head} as lines"),
            draw=lambda trace, s: attention_lines(trace, s.layer, s.head, s.query, s.key),
            click_selects={"customdata": ("query", "key")},
            inspect=inspect_attention_line,
            verify=verify_captured(PATTERN),
            height=500,
            width="half",
        ),
    ),
)
