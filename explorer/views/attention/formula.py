"""The chosen cell's weight, worked out."""

from explorer.analysis.attention import attention_cell
from explorer.architecture.attention import divisor, divisor_in_numbers
from explorer.architecture.caps import written
from explorer.explain.notation import number, quoted
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.labels import compared, shared_head

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
    layer, head, query, key = selection.layer, selection.head, selection.query, selection.key
    if not (trace.has("blocks.*.attn.scores") and trace.has("blocks.*.attn.q") and trace.has("blocks.*.attn.k")):
        return _(
            "layer {layer} head {head}, query {query} → key {key}: weight = {weight}",
            layer=layer,
            head=head,
            query=query,
            key=key,
            weight=number(trace[f"blocks.{layer}.attn.pattern"][head, query, key]),
        )
    cell = attention_cell(trace, layer, head, query, key)
    whose = _("layer {layer} head {head}", layer=layer, head=head)
    if shared := shared_head(trace.config, head):
        whose = _("{whose} (k and v of {shared})", whose=whose, shared=shared)
    cap = trace.config.score_cap
    return look_up(
        CELL[cap is not None],
        whose=whose,
        query=quoted(trace.tokens[query]),
        query_position=query,
        key=quoted(trace.tokens[key]),
        key_position=key,
        dot=number(cell.dot),
        divisor=divisor(trace.config),
        divided_by=divisor_in_numbers(trace.config),
        score=number(cell.score),
        cap=written("score", cap) if cap else "",
        capped=number(cell.capped),
        exp_score=number(cell.exp_score),
        exp_total=number(cell.exp_total),
        weight=number(cell.weight),
        vectors=compared(trace.config, layer),
        error=number(cell.error),
    )
