"""Attention of single heads: scores, displayed patterns and output norms; and what the KV cache stores and saves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.head_scores import without_first_key
from explorer.architecture.formulas import (
    first_visible_key,
    score_divisor_formula,
    score_divisor_in_numbers,
    softcap,
    softcap_formula,
    visibility_mask,
)
from explorer.explain import arithmetic
from explorer.explain.arithmetic import largest, mean
from explorer.explain.captured import derive
from explorer.explain.captured.attention import kv_head_index
from explorer.explain.derivation import ALL, Calculation, Derivation, Input, get_element, get_item, read_input
from explorer.explain.notation import (
    format_attention_cell,
    format_dot_product,
    format_factor,
    format_query_key,
    format_six_digits,
    format_token_position,
)
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate
from model.config import ModelConfig, flops_table, kv_cache_bytes_per_token


@dataclass(frozen=True)
class AttentionCell:
    """One attention weight, recomputed: weight = exp(score) / Σ exp(scores of the row), over keys up to the query.

    Scores are soft-capped if the model caps them.

    Attributes:
        dot: q·k, unscaled.
        score: q·k / √d.
        capped: the score after soft-capping.
        exp_score, exp_total: numerator and denominator, both divided by exp(largest capped score of the row).
        weight: their quotient, recomputed.
        error: |weight - captured pattern|.
    """

    dot: float
    score: float
    capped: float
    exp_score: float
    exp_total: float
    weight: float
    error: float


def attention_cell(trace: Trace, layer: int, head: int, query: int, key: int) -> AttentionCell:
    """Recompute pattern[query, key] of a head from its queries and keys."""
    q, keys = query_key_vectors(trace, layer, head)
    q, keys = q[query], keys[: query + 1]  # (d,), (query + 1, d)
    dots = keys @ q
    scores = dots / trace.config.divisor
    visible_keys = visibility_mask(trace.config, layer, len(trace))[query, : query + 1]
    capped_scores = softcap(scores, trace.config.score_cap)
    exps = np.exp(np.where(visible_keys, capped_scores - capped_scores[visible_keys].max(), -np.inf))
    weight = exps[key] / exps.sum()
    captured = trace[f"blocks.{layer}.attn.pattern"][head, query, key]
    return AttentionCell(
        dots[key], scores[key], capped_scores[key], exps[key], exps.sum(), weight, abs(weight - captured)
    )


# name -> quantity in a cell of the pattern
PATTERNS = {
    "weight": N_("attention weight"),
    "without_first": N_("weight, the first token left out"),
    "moved": N_("what is moved: weight × length of the value as written"),
    "layer_mean": N_("mean weight of the layer’s heads"),
    "layer_max": N_("largest weight of the layer’s heads"),
    "chosen_mean": N_("mean weight of the chosen heads"),
    "chosen_max": N_("largest weight of the chosen heads"),
}


def displayed_pattern(
    trace: Trace, layer: int, head: int, kind: str = "weight", chosen_heads: Sequence[tuple[int, int]] = ()
) -> np.ndarray:
    """Return one of `PATTERNS` as a (T, T) array, row = query, column = key.

    Args:
        chosen_heads: (layer, head) pairs; if empty, the given layer and head.
    """
    if kind in ("chosen_mean", "chosen_max"):
        heads = np.stack(
            [trace[f"blocks.{i}.attn.pattern"][j] for i, j in chosen_heads or ((layer, head),)]
        )  # (N, T, T)
        return heads.max(0) if kind == "chosen_max" else heads.mean(0)
    patterns = trace[f"blocks.{layer}.attn.pattern"]  # (H, T, T)
    if kind == "without_first":
        return without_first_key(patterns[head])
    if kind == "moved":
        return patterns[head] * projected_value_norms(trace, layer, head)
    if kind == "layer_mean":
        return patterns.mean(0)
    return patterns.max(0) if kind == "layer_max" else patterns[head]


def projected_value_norms(trace: Trace, layer: int, head: int) -> np.ndarray:
    """Return ‖W_O v‖₂ of every key, (T,), before any norm.

    Attention weights show which keys a head attends to; these norms show how long the vector is that each key
    contributes (Kobayashi et al. 2020, eq. 8).
    """
    values = trace.head_value(f"blocks.{layer}.attn.v", head)  # (T, d)
    d = values.shape[1]
    output = trace.weights[f"blocks.{layer}.attn.o_proj.weight"][:, head * d : (head + 1) * d]  # (D, d)
    return np.linalg.norm(values @ output.T, axis=-1)


def score_by_dimension(trace: Trace, layer: int, head: int, query: int, key: int) -> np.ndarray:
    """Return the terms qᵢ kᵢ / √d of each dimension, (d,), which sum to the score."""
    q, keys = query_key_vectors(trace, layer, head)
    return q[query] * keys[key] / trace.config.divisor


def query_key_vectors(trace: Trace, layer: int, head: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the queries and keys (T, d) whose products are the scores, after rotation if the layer uses RoPE."""
    suffix = "_rot" if f"blocks.{layer}.attn.q_rot" in trace else ""
    names = (f"blocks.{layer}.attn.q{suffix}", f"blocks.{layer}.attn.k{suffix}")
    q, k = (trace.head_value(name, head).astype(np.float64) for name in names)
    return q, k


@dataclass(frozen=True)
class AttentionStages:
    """The stages of one query's attention, from dot products to weights, over all T keys.

    Attributes:
        dots: (T,) q·k.
        scores: (T,) q·k / √d.
        capped: (T,) the scores after soft-capping.
        allowed: (T,) booleans, False for keys that the mask hides: after the query, and before the layer's window.
        weights: (T,) softmax of the allowed capped scores; they sum to 1.
        output_norms: (T,) ‖W_O v‖ of each key.
    """

    dots: np.ndarray
    scores: np.ndarray
    capped: np.ndarray
    allowed: np.ndarray
    weights: np.ndarray
    output_norms: np.ndarray


def query_attention_stages(trace: Trace, layer: int, head: int, query: int) -> AttentionStages:
    """Return the stages of a head's attention from one query, each with one number per key (T,)."""
    scores = trace[f"blocks.{layer}.attn.scores"][head, query]
    return AttentionStages(
        dots=scores * trace.config.divisor,
        scores=scores,
        capped=softcap(scores, trace.config.score_cap),
        allowed=visibility_mask(trace.config, layer, len(trace))[query],
        weights=trace[f"blocks.{layer}.attn.pattern"][head, query],
        output_norms=projected_value_norms(trace, layer, head),
    )


FILE, HEADS = "explorer/analysis/attention.py", "explorer/analysis/head_scores.py"


def select_keys(weights: np.ndarray, allowed: np.ndarray, query: int, chosen: int, max_keys: int) -> list[int]:
    """Return the displayed keys in order: the chosen one, those with the largest weights, one masked if any is."""
    later = [query + 1] if query + 1 < len(weights) else []
    is_chosen = np.arange(len(weights)) == chosen
    candidates = np.flatnonzero(allowed | is_chosen)
    ranks = np.where(is_chosen, np.inf, weights)[candidates]
    top_keys = candidates[np.argsort(-ranks, kind="stable")[: max_keys - len(later)]]
    return sorted({*map(int, top_keys), *later})


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
        source = SourceLine(FILE, "return patterns.mean(0)" if kind == "layer_mean" else "return patterns.max(0)")
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
        source = SourceLine(FILE, "return heads.max(0) if")
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
            f"{format_six_digits(weights[key - 1])} / {format_six_digits(rest)} = {format_six_digits(value)}"
            if key
            else _("0: the first is left out")
        ),
        value,
        (read,),
    )


VALUE_WEIGHTED_LINE = SourceLine(FILE, "return patterns[head] * projected_value_norms(")


def value_weighted_attention(trace: Trace, layer: int, head: int, query: int, key: int) -> Calculation:
    """Calculate value-weighted attention: weight × ‖W_O v‖."""
    weight, read = read_input(trace, f"blocks.{layer}.attn.pattern", head, query, key)
    norm, inputs = value_output_norm(trace, layer, head, key)
    value = float(weight) * norm
    numbers = f"{format_six_digits(weight)} · {format_six_digits(norm)} = {format_six_digits(value)}"
    return Calculation(_("moved = weight · ‖W_O v‖"), lambda: numbers, value, (read, *inputs))


def value_output_norm(trace: Trace, layer: int, head: int, key: int) -> tuple[float, tuple[Input, ...]]:
    """Return ‖W_O v‖ of a head's value, and its inputs."""
    name = f"blocks.{layer}.attn.v"
    v, from_v = read_input(trace, name, kv_head_index(trace, name, head), key)
    output, from_output = read_input(
        trace, f"blocks.{layer}.attn.o_proj.weight", ALL, output_projection_columns(head, len(v))
    )
    return math.sqrt(math.fsum(x * x for x in output @ v)), (from_v, from_output)


def output_projection_columns(head: int, d: int) -> slice:
    """Return the columns of W_O that multiply a head's z."""
    return slice(head * d, (head + 1) * d)


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
    numbers = f"√{format_six_digits(norm**2)} = {format_six_digits(norm)}"
    working = Calculation(_("length of W_O v = √Σ (W_O v)²"), lambda: numbers, norm, inputs)
    source = SourceLine(FILE, "return np.linalg.norm(values @ output.T")
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
                "capped = {cap} = {value}",
                cap=softcap_formula(format_six_digits(score), cap),
                value=format_six_digits(value),
            ),
            value,
            (read,),
        ),
        SourceLine("explorer/architecture/formulas.py", "return x if cap is None else cap * np.tanh(x / cap)"),
    )


def query_key_product(trace: Trace, layer: int, head: int, query: int, key: int, score: Derivation) -> Derivation:
    """Derive q·k from the vectors of a score's derivation."""
    inputs = score.working.inputs
    (q, _read), (k, _read) = (read_input(trace, read.name, *read.index) for read in inputs)
    value = float(q @ k)
    working = Calculation(
        "q·k = Σ q · k", lambda: f"q·k = {format_dot_product(q, k)} = {format_six_digits(value)}", value, inputs
    )
    displayed_value = get_element(query_attention_stages(trace, layer, head, query).dots, key)
    return Derivation(
        "q·k", score.location, displayed_value, working, SourceLine(FILE, "dots=scores * trace.config.divisor")
    )


def dimension_contribution(trace: Trace, layer: int, head: int, query: int, key: int, dim: int) -> Derivation:
    """Derive the contribution of one dimension of q and k to their score."""
    displayed_value = get_element(score_by_dimension(trace, layer, head, query, key), dim)
    suffix = "_rot" * (f"blocks.{layer}.attn.q_rot" in trace)
    (q, from_q), (k, from_k) = (
        read_input(trace, name, kv_head_index(trace, name, head), position, dim)
        for name, position in ((f"blocks.{layer}.attn.q{suffix}", query), (f"blocks.{layer}.attn.k{suffix}", key))
    )
    config = trace.config
    value = float(q) * float(k) / config.divisor
    numbers = f"{format_factor(q)}·{format_factor(k)} / {score_divisor_in_numbers(config)} = {format_six_digits(value)}"
    return Derivation(
        _("what dimension {dim} adds to the score", dim=dim),
        format_attention_cell(trace, layer, head, query, key),
        displayed_value,
        Calculation(f"qᵢ kᵢ / {score_divisor_formula(config)}", lambda: numbers, value, (from_q, from_k)),
        SourceLine(FILE, "return q[query] * keys[key] / trace.config.divisor"),
    )


def cached_tap(trace: Trace, layer: int, kind: str) -> str:
    """Return the tap of the cached keys ("k"), after rotation if the model uses RoPE, or values ("v") of a layer."""
    name = f"blocks.{layer}.attn.{kind}"
    return f"{name}_rot" if kind == "k" and f"{name}_rot" in trace else name


def cached_norms(trace: Trace, layer: int, kind: str) -> np.ndarray:
    """Return ‖x‖₂ of the cached vector of every kv head and position, (G, T)."""
    return np.linalg.norm(trace[cached_tap(trace, layer, kind)], axis=-1)


def cached_norms_all_heads(trace: Trace, kind: str) -> np.ndarray:
    """Return ‖x‖₂ of each layer's cached vectors of a position, all kv heads concatenated, (L, T)."""
    return np.stack([np.linalg.norm(cached_norms(trace, i, kind), axis=0) for i in range(trace.config.num_layers)])


def positions_computed(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of positions computed after each generation step, with and without a cache, (steps,) each.

    With a cache n after n steps; without one 1 + 2 + … + n = n (n + 1) / 2.
    """
    n = np.arange(1, steps + 1)
    return n, n * (n + 1) // 2


def megabytes_stored(config: ModelConfig, positions: np.ndarray | int, shared: bool = True) -> np.ndarray | float:
    """Return the memory of the cached keys and values of `positions` positions, 4 bytes a number.

    If not `shared`, as if every query head had its own keys and values.
    """
    bytes_per_token = kv_cache_bytes_per_token(config)
    bytes_per_token = bytes_per_token if shared else bytes_per_token * config.num_heads // config.kv_heads
    return positions * (bytes_per_token / 1e6)


def step_flops(config: ModelConfig, position: int) -> tuple[int, int]:
    """Return the floating-point operations of a generation step, with a cache and without one.

    Without a cache, all positions up to `position` are computed again.
    """
    flops = [sum(row.count for row in flops_table(config, keys)) for keys in range(1, position + 2)]
    return flops[-1], sum(flops)


# kind -> label of the norm for one kv head, and for all
NORM_NAMES = {
    "k": (
        N_("length of the key of layer {layer}, kv head {group}"),
        N_("length of the keys of layer {layer}, all kv heads"),
    ),
    "v": (
        N_("length of the value of layer {layer}, kv head {group}"),
        N_("length of the values of layer {layer}, all kv heads"),
    ),
}


def cached_vector_norm(
    trace: Trace, kind: str, layer: int, group: int | None, position: int, query: int
) -> Derivation | None:
    """Derive the norm of a cached vector of a position, for one kv head or all; None if not cached yet."""
    norms = (
        cached_norms_all_heads(trace, kind)[layer : layer + 1] if group is None else cached_norms(trace, layer, kind)
    )
    displayed_value = get_element(norms, group or 0, position)
    if position > query:
        return None
    x, read = read_input(trace, cached_tap(trace, layer, kind), ALL if group is None else group, position)
    return Derivation(
        translate(NORM_NAMES[kind][group is None], layer=layer, group=group),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.norm(x, (read,)),
        SourceLine(FILE, "return np.stack([" if group is None else "return np.linalg.norm(trace["),
    )


def cache_megabytes(trace: Trace, stored: int, shared: bool) -> Derivation:
    """Derive the memory of the cache after some positions, with kv heads shared as in the model or not."""
    config = trace.config
    heads = config.kv_heads if shared else config.num_heads
    value = 2 * config.num_layers * heads * config.d_head * 4 * stored / 1e6
    factors = f"2·{config.num_layers}·{heads}·{config.d_head}·4·{stored}"
    working = Calculation(
        _("2 (key, value) · layers · kv heads · d · 4 bytes · positions / 10⁶")
        if shared
        else _("2 (key, value) · layers · heads · d · 4 bytes · positions / 10⁶"),
        lambda: f"{factors} / 1,000,000 = {format_six_digits(value)}",
        value,
        (),
    )
    return Derivation(
        _("megabytes in the cache"),
        ngettext("after {count} position", "after {count} positions", stored),
        float(megabytes_stored(config, stored, shared)),
        working,
        SourceLine(FILE, "return positions * (bytes_per_token / 1e6)"),
    )


def derive_positions_computed(trace: Trace, step: int, cached: bool) -> Derivation:
    """Derive the number of positions computed up to a generation step, with a cache or without."""
    displayed_value = get_element(positions_computed(len(trace))[0 if cached else 1], step - 1)
    value = float(step if cached else sum(range(1, step + 1)))
    working = Calculation(
        _("n, one a step") if cached else "1 + 2 + … + n = n (n + 1) / 2",
        lambda: f"{step}" if cached else f"{step} · {step + 1} / 2 = {int(value):,}",
        value,
        (),
    )
    name = _("positions computed with the cache") if cached else _("positions computed without a cache")
    location = ngettext("in {count} step", "in {count} steps", step)
    return Derivation(name, location, displayed_value, working, SourceLine(FILE, "return n, n * (n + 1) // 2"))
