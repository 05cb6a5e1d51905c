"""The formula of the chosen cell's attention weight."""

from explorer.analysis.attention import attention_cell
from explorer.architecture.attention import score_divisor_formula, score_divisor_in_numbers
from explorer.architecture.logits import softcap_formula
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.model_labels import score_inputs_text, shared_kv_head_text

CELL = {  # whether scores are capped -> from the products to a weight
    False: N_(
        "{whose}, query {query} ({query_position}) → key {key} ({key_position})\n"
        "score  = q·k / {divisor} = {dot} / {divided_by} = {score}\n"
        "weight = e^(score − max) / Σ e^(scores − max) = {exp_score} / {exp_total} = {weight}   recomputed from "
        "{vectors}, off by {error}"
    ),
    True: N_(
        "{whose}, query {query} ({query_position}) → key {key} ({key_position})\n"
        "score  = q·k / {divisor} = {dot} / {divided_by} = {score}\n"
        "capped = {cap} = {capped}\n"
        "weight = e^(capped − max) / Σ e^(capped − max) = {exp_score} / {exp_total} = {weight}   recomputed from "
        "{vectors}, off by {error}"
    ),
}


def formula(trace: Trace, selection: Selection) -> str:
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
            weight=format_number(trace[f"blocks.{layer}.attn.pattern"][head, query, key]),
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
        dot=format_number(cell.dot),
        divisor=score_divisor_formula(trace.config),
        divided_by=score_divisor_in_numbers(trace.config),
        score=format_number(cell.score),
        cap=softcap_formula("score", cap) if cap else "",
        capped=format_number(cell.capped),
        exp_score=format_number(cell.exp_score),
        exp_total=format_number(cell.exp_total),
        weight=format_number(cell.weight),
        vectors=score_inputs_text(trace.config, layer),
        error=format_number(cell.error),
    )
