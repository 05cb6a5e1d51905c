"""Derivations of attention patterns, of the stages of a query, of head scores and of attention rollout."""

import math
from collections.abc import Sequence

import numpy as np

from explorer.analysis.attention import PATTERNS, displayed_pattern, query_attention_stages
from explorer.analysis.heads import HEAD_SCORES, head_scores, target_mask
from explorer.analysis.intervention_effects import pattern_change
from explorer.analysis.token_contributions import attention_rollout
from explorer.architecture.attention import first_visible_key
from explorer.architecture.logits import softcap_formula
from explorer.explain.arithmetic import largest, mean
from explorer.explain.captured import derive
from explorer.explain.captured.attention import kv_head_index
from explorer.explain.clicked_point import get_element, get_item
from explorer.explain.derivation import ALL, Calculation, Derivation, Input, read_input
from explorer.explain.notation import (
    format_attention_cell,
    format_dot_product,
    format_number,
    format_query_key,
    format_token_position,
)
from explorer.explain.source_code import SourceLine
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate


def head_score(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> Derivation | None:
    """Derive a head's score, one of `HEAD_SCORES`; None if no query of this run counts."""
    value = get_element(head_scores(trace, name, hide_first), layer, head)
    if math.isnan(value):
        return None
    score, targets = HEAD_SCORES[name], target_mask(trace, name)
    rows, read = read_input(trace, f"blocks.{layer}.attn.pattern", head)
    query_scores = []
    for query in range(1, len(trace)):
        weights, first = rows[query, : query + 1].tolist(), first_visible_key(trace.config, layer, query)
        if hide_first:
            rest = sum(weights[1:])
            weights = [0.0, *(w / rest if rest > 1e-12 else 0.0 for w in weights[1:])]
        if score.measure:
            query_scores.append(float(score.measure(np.array(weights), np.array(max(2, query + 1 - first)))))
        elif (keys := np.flatnonzero(targets[query])).size:
            query_scores.append(sum(weights[key] for key in keys))
    location = SCORE_LOCATION_WITHOUT_FIRST if hide_first else SCORE_LOCATION
    return Derivation(
        translate(score.title),
        translate(location, layer=layer, head=head, looks=translate(score.description)),
        value,
        mean(translate(score.formula), query_scores, (read,), _("score")),
        SourceLine(f"{score.measure.__module__.replace('.', '/')}.py", "return ")
        if score.measure
        else SourceLine("explorer/analysis/heads.py", "(rows[:, counts] * targets"),
    )


SCORE_LOCATION = N_("layer {layer} head {head}: how much it {looks}")
SCORE_LOCATION_WITHOUT_FIRST = N_("layer {layer} head {head}: how much it {looks}, the first token left out")


def rollout_weight(trace: Trace, query: int, key: int) -> Derivation:
    """Derive an attention rollout weight of a query and a key, from the last step, through layer 0."""
    displayed_value = get_element(attention_rollout(trace, query), key)
    row, inputs = np.eye(len(trace))[query], []
    for layer in reversed(range(trace.config.num_layers)):
        patterns, read = read_input(trace, f"blocks.{layer}.attn.pattern")
        mean, above = patterns.mean(0), row
        mean = mean / mean.sum(-1, keepdims=True)
        row = (above @ mean + above) / 2
        inputs.append(read)
    value = float(row[key])
    working = Calculation(
        _("½ Σ share after layer 0 · mean weight of layer 0’s heads + ½ own share after layer 0"),
        lambda: f"½ {format_dot_product(above, mean[:, key])} + ½ {format_number(above[key])} = {format_number(value)}",
        value,
        tuple(reversed(inputs)),
    )
    source = SourceLine("explorer/analysis/token_contributions.py", "row = 0.5 * (row @ ")
    return Derivation(
        _("share of attention rollout"), format_query_key(trace, query, key), displayed_value, working, source
    )


ATTENTION, HEADS = "explorer/analysis/attention.py", "explorer/analysis/heads.py"


def displayed_weight(
    trace: Trace, layer: int, head: int, query: int, key: int, kind: str, chosen_heads: Sequence[tuple[int, int]] = ()
) -> Derivation | None:
    """Derive a cell of one of `PATTERNS`; None after the query, where nothing is displayed."""
    if key > query:
        return None
    name = f"blocks.{layer}.attn.pattern"
    if kind == "weight":
        return derive(trace, name, (head, query, key))
    value = get_element(displayed_pattern(trace, layer, head, kind, chosen_heads), query, key)
    location = format_attention_cell(trace, layer, head, query, key)
    if kind == "without_first":
        working, source = (
            weight_without_first_key(trace, name, head, query, key),
            SourceLine(HEADS, "return np.divide(rest, total"),
        )
    elif kind == "moved":
        working, source = value_weighted_attention(trace, layer, head, query, key), VALUE_WEIGHTED_LINE
    elif kind in ("layer_mean", "layer_max"):
        weights, read = read_input(trace, name, ALL, query, key)
        working = aggregate_heads(
            kind, weights, [_("head {head}", head=head_index) for head_index in range(len(weights))], (read,)
        )
        source = SourceLine(ATTENTION, "return patterns.mean(0)" if kind == "layer_mean" else "return patterns.max(0)")
        query_key = {"query": format_token_position(trace, query), "key": format_token_position(trace, key)}
        location = _("layer {layer}, query {query} → key {key}", layer=layer, **query_key)
    else:
        heads = chosen_heads or ((layer, head),)
        read_weights = [read_input(trace, f"blocks.{i}.attn.pattern", j, query, key) for i, j in heads]
        weights, inputs = (
            np.array([float(weight) for weight, _read in read_weights]),
            tuple(read for _weight, read in read_weights),
        )
        working = aggregate_heads(
            kind, weights, [_("layer {layer} head {head}", layer=i, head=j) for i, j in heads], inputs
        )
        source = SourceLine(ATTENTION, "return heads.max(0) if")
        query_key = format_query_key(trace, query, key)
        location = ngettext("{count} chosen head, {ends}", "{count} chosen heads, {ends}", len(heads), ends=query_key)
    return Derivation(translate(PATTERNS[kind]), location, value, working, source)


AGGREGATE_FORMULAS = {
    "layer_mean": N_("mean = Σ weights of the heads / H"),
    "layer_max": N_("the largest weight of the heads"),
    "chosen_mean": N_("mean = Σ weights of the chosen heads / how many"),
    "chosen_max": N_("the largest weight of the chosen heads"),
}


def aggregate_heads(kind: str, weights: np.ndarray, labels: Sequence[str], inputs: tuple[Input, ...]) -> Calculation:
    """Calculate the mean or the maximum weight of several heads, one of `AGGREGATE_FORMULAS`."""
    symbols = translate(AGGREGATE_FORMULAS[kind])
    return mean(symbols, weights, inputs) if kind.endswith("mean") else largest(symbols, weights, labels, inputs)


def weight_without_first_key(trace: Trace, name: str, head: int, query: int, key: int) -> Calculation:
    """Calculate an attention weight among all keys but the first."""
    weights, read = read_input(trace, name, head, query, slice(1, query + 1))
    rest = float(weights.sum())
    value = float(weights[key - 1]) / rest if key and rest > 1e-12 else 0.0
    return Calculation(
        _("weight without the first = weight / Σ weights of all keys but the first"),
        lambda: (
            f"{format_number(weights[key - 1])} / {format_number(rest)} = {format_number(value)}"
            if key
            else _("0: the first is left out")
        ),
        value,
        (read,),
    )


VALUE_WEIGHTED_LINE = SourceLine(ATTENTION, "return patterns[head] * projected_value_norms(")


def value_weighted_attention(trace: Trace, layer: int, head: int, query: int, key: int) -> Calculation:
    """Calculate value-weighted attention: weight × ‖W_O v‖."""
    weight, read = read_input(trace, f"blocks.{layer}.attn.pattern", head, query, key)
    norm, inputs = value_output_norm(trace, layer, head, key)
    value = float(weight) * norm
    numbers = f"{format_number(weight)} · {format_number(norm)} = {format_number(value)}"
    return Calculation(_("moved = weight · ‖W_O v‖"), lambda: numbers, value, (read, *inputs))


def value_output_norm(trace: Trace, layer: int, head: int, key: int) -> tuple[float, tuple[Input, ...]]:
    """Return ‖W_O v‖ of a head's value, and its inputs."""
    name = f"blocks.{layer}.attn.v"
    v, from_v = read_input(trace, name, kv_head_index(trace, name, head), key)
    output, from_output = read_input(trace, f"blocks.{layer}.attn.o_proj.weight", ALL, output_columns(head, len(v)))
    return math.sqrt(math.fsum(x * x for x in output @ v)), (from_v, from_output)


def output_columns(head: int, d: int) -> slice:
    """Return the columns of W_O that multiply a head's z."""
    return slice(head * d, (head + 1) * d)


def weight_change(comparison: Comparison, layer: int, head: int, query: int, key: int) -> Derivation | None:
    """Derive the change of an attention weight by interventions; None after the query."""
    if key > query:
        return None
    name, index = f"blocks.{layer}.attn.pattern", (head, query, key)
    after, before = (derive(run, name, index) for run in comparison.runs)
    value = after.recomputed_value - before.recomputed_value
    working = Calculation(
        _("change = changed weight − unchanged weight"),
        lambda: _(
            "changed: {changed}; unchanged: {unchanged}; change = {value}",
            changed=after.working.numbers(),
            unchanged=before.working.numbers(),
            value=format_number(value),
        ),
        value,
        (*after.working.inputs, *before.working.inputs),
    )
    source = SourceLine(
        "explorer/analysis/intervention_effects.py",
        "return comparison.trace[name][head] - comparison.other[name][head]",
    )
    displayed_value = get_element(pattern_change(comparison, layer, head), query, key)
    return Derivation(_("change of the attention weight"), after.location, displayed_value, working, source)


STAGES = {  # by whether scores are capped
    False: ("q·k", "score", "masked", "weight", "length", "moved"),
    True: ("q·k", "score", "capped", "masked", "weight", "length", "moved"),
}


def attention_stage(trace: Trace, layer: int, head: int, query: int, key: int, row: int) -> Derivation | None:
    """Derive a number of a stage of a query's attention; None for masked keys.

    Args:
        row: index into the model's `STAGES`.
    """
    cap = trace.config.score_cap
    name, index = get_item(STAGES[cap is not None], row), (head, query, key)
    if name == "masked" and not first_visible_key(trace.config, layer, query) <= key <= query:
        return None
    captured = {"score": "scores", "masked": "scores", "weight": "pattern", "q·k": "scores"}
    if cap and name in ("capped", "masked"):
        return softcapped_score(trace, layer, head, query, key, cap)
    if name in captured:
        derivation = derive(trace, f"blocks.{layer}.attn.{captured[name]}", index)
        return derivation if name != "q·k" else query_key_product(trace, layer, head, query, key, derivation)
    steps = query_attention_stages(trace, layer, head, query)
    displayed_value, location = (
        get_element(steps.output_norms, key),
        format_attention_cell(trace, layer, head, query, key),
    )
    if name == "moved":
        displayed_value *= float(steps.weights[key])
        return Derivation(
            translate(PATTERNS[name]),
            location,
            displayed_value,
            value_weighted_attention(trace, layer, head, query, key),
            VALUE_WEIGHTED_LINE,
        )
    norm, inputs = value_output_norm(trace, layer, head, key)
    numbers = f"√{format_number(norm**2)} = {format_number(norm)}"
    working = Calculation(_("length of W_O v = √Σ (W_O v)²"), lambda: numbers, norm, inputs)
    source = SourceLine(ATTENTION, "return np.linalg.norm(values @ output.T")
    return Derivation(_("length of W_O v"), location, displayed_value, working, source)


def softcapped_score(trace: Trace, layer: int, head: int, query: int, key: int, cap: float) -> Derivation:
    """Derive a soft-capped score."""
    score, read = read_input(trace, f"blocks.{layer}.attn.scores", head, query, key)
    value = cap * math.tanh(score / cap)
    return Derivation(
        _("capped score"),
        format_attention_cell(trace, layer, head, query, key),
        get_element(query_attention_stages(trace, layer, head, query).capped, key),
        Calculation(
            _("capped = {cap}", cap=softcap_formula("score", cap)),
            lambda: _(
                "capped = {cap} = {value}", cap=softcap_formula(format_number(score), cap), value=format_number(value)
            ),
            value,
            (read,),
        ),
        SourceLine("explorer/architecture/logits.py", "return x if cap is None else cap * np.tanh(x / cap)"),
    )


def query_key_product(trace: Trace, layer: int, head: int, query: int, key: int, score: Derivation) -> Derivation:
    """Derive q·k from the vectors of a score's derivation."""
    inputs = score.working.inputs
    (q, _read), (k, _read) = (read_input(trace, read.name, *read.index) for read in inputs)
    value = float(q @ k)
    working = Calculation(
        "q·k = Σ q · k", lambda: f"q·k = {format_dot_product(q, k)} = {format_number(value)}", value, inputs
    )
    displayed_value = get_element(query_attention_stages(trace, layer, head, query).dots, key)
    return Derivation(
        "q·k", score.location, displayed_value, working, SourceLine(ATTENTION, "dots=scores * trace.config.divisor")
    )
