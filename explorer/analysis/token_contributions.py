"""Contributions of each token to a prediction: direct logit attribution by source token, and four other methods."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    THROUGH_NORMS,
    changed_head_mask,
    component_contribution,
    direct_logit_attribution,
    head_contribution,
    head_output_norms,
    logit_components,
    logit_contribution,
    propagate_along_path,
)
from explorer.architecture.residual_stream import path_to_unembedding
from explorer.explain.arithmetic import difference, dot_product
from explorer.explain.captured.formulas import concatenate_heads
from explorer.explain.derivation import (
    ALL,
    Calculation,
    Derivation,
    Input,
    RecomputationCheck,
    get_element,
    read_input,
    unique_inputs,
)
from explorer.explain.notation import (
    format_dot_product,
    format_factor,
    format_query_key,
    format_six_digits,
    format_token_position,
)
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace, cache_per_trace
from explorer.translations import _, translate


def attention_rollout(trace: Trace, query: int) -> np.ndarray:
    """Return the attention rollout of a query, (T,): weights of all positions, which sum to 1.

    In every layer half of a vector comes from the token itself, along the residual stream, and half from the keys
    of the mean head: Ã = ½ A + ½ I (§3, with rows normalised). This is the query's row of Ã_L … Ã_2 Ã_1.
    """
    row = np.eye(len(trace))[query]
    for layer in reversed(range(trace.config.num_layers)):
        attention = trace[f"blocks.{layer}.attn.pattern"].mean(0, dtype=np.float64)  # (T, T)
        row = 0.5 * (row @ (attention / attention.sum(-1, keepdims=True))) + 0.5 * row
    return row


METHODS = ("gradient", "integrated", "rollout", "knock_out")
MIN_TOKENS = 4  # for a rank correlation


@dataclass(frozen=True)
class TokenContributions:
    """Contributions of tokens to f, a logit at a position or its difference to a contrast token's logit.

    Attributes:
        by_method: for each of METHODS (N,), for the N tokens up to the position. Gradients and knock-out in units
            of f, above 0 if the token raises f; rollout weights sum to 1. The knock-out of the last token is NaN.
        f, f_baseline: f of the run, and of the baseline of integrated gradients.
        arrays: the underlying values, see `explorer.tracing.attribution.token_contributions`.
    """

    by_method: Mapping[str, np.ndarray]
    f: float
    f_baseline: float
    arrays: Mapping[str, np.ndarray]

    @property
    def completeness_error(self) -> float:
        """Σ − (f(x) − f(baseline)) of integrated gradients, which tends to 0 with the number of steps."""
        return float(self.by_method["integrated"].sum() - (self.f - self.f_baseline))

    def agreement(self, method: str, other: str) -> float:
        """Return Spearman's rank correlation of two methods over all tokens but the last.

        NaN for fewer than four tokens, and if a method gives all tokens the same value.
        """
        pair = [ranks_with_ties(self.by_method[name][:-1]) for name in (method, other)]
        if len(pair[0]) < MIN_TOKENS or any(np.ptp(token_ranks) == 0 for token_ranks in pair):
            return float("nan")
        return float(np.corrcoef(*pair)[0, 1])


def token_contributions(
    trace: Trace, position: int, token_id: int, contrast_id: int | None = None
) -> TokenContributions:
    """Compute the contributions to the logit of a token after a position, or to a logit difference.

    Raises the errors of `Trace.token_contributions`.
    """
    arrays = trace.token_contributions(position, token_id, contrast_id)
    x, baseline = arrays["embed"], arrays["baseline"]
    f = float(arrays["f"])
    by_method = {
        "gradient": (x * arrays["slope"]).sum(-1),
        "integrated": ((x - baseline) * arrays["mean_slope"]).sum(-1),
        "rollout": attention_rollout(trace, position)[: position + 1],
        "knock_out": f - arrays["without"],
    }
    return TokenContributions(by_method, f, float(arrays["f_baseline"]), arrays)


def ranks_with_ties(values: np.ndarray) -> np.ndarray:
    """Return ranks from 0; ties get their mean rank."""
    below = (values[:, None] > values).sum(1)
    return below + ((values[:, None] == values).sum(1) - 1) / 2


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
        lambda: (
            f"½ {format_dot_product(above, mean[:, key])} + ½ {format_six_digits(above[key])} "
            f"= {format_six_digits(value)}"
        ),
        value,
        tuple(reversed(inputs)),
    )
    source = SourceLine(FILE, "row = 0.5 * (row @ ")
    return Derivation(
        _("share of attention rollout"), format_query_key(trace, query, key), displayed_value, working, source
    )


FILE = "explorer/analysis/token_contributions.py"


def token_contribution(
    trace: Trace, position: int, token_id: int, contrast_id: int | None, method: str, key: int
) -> Derivation | None:
    """Derive a token's contribution by one of METHODS; None if the method has no value for it."""
    contributions = token_contributions(trace, position, token_id, contrast_id)
    displayed_value = get_element(contributions.by_method[method], key)
    if math.isnan(displayed_value):
        return None
    if method == "rollout":
        return rollout_weight(trace, position, key)
    derive_method = {
        "gradient": _gradient_contribution,
        "integrated": _integrated_gradient_contribution,
        "knock_out": _attention_knockout_contribution,
    }[method]
    name, working, fragment = derive_method(trace, contributions, position, token_id, contrast_id, key)
    return Derivation(
        name,
        _("of {token}", token=format_token_position(trace, key)),
        displayed_value,
        working,
        SourceLine(FILE, fragment),
    )


def _gradient_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    x, read = read_input(trace, "embed", key)
    slope = contributions.arrays["slope"][key]
    inputs = read, Input(_("gradient of the logit at embed"), (key,), slope.shape)
    return _("gradient × input"), dot_product("Σ x ∂logit/∂x =", x, slope, inputs), '"gradient": (x'


def _integrated_gradient_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    x, read = read_input(trace, "embed", key)
    slope, baseline = (contributions.arrays[name][key] for name in ("mean_slope", "baseline"))
    inputs = read, Input(_("mean gradient of the logit along the path"), (key,), slope.shape)
    working = dot_product(_("Σ (x − baseline) · mean ∂logit/∂x ="), x - baseline, slope, inputs)
    return _("integrated gradients"), working, '"integrated": ((x'


def _attention_knockout_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    logits, read = read_input(trace, "logits", position)
    f = float(logits[token_id] - (0 if contrast_id is None else logits[contrast_id]))
    without = float(contributions.arrays["without"][key])
    rerun_input = Input(
        _("logits of a run in which no later token sees it, at [{query}]", query=position), (), read.shape
    )
    working = difference(_("logit − logit without it"), f, without, (read, rerun_input))
    return _("knock-out"), working, '"knock_out": f'


def check_gradient_run(trace: Trace, position: int, token_id: int, contrast_id: int | None) -> RecomputationCheck:
    """Check f of the run that the gradients were computed in against the captured logits."""
    logits = trace.logits.row(position).astype(float)
    captured = logits[token_id] - (0 if contrast_id is None else logits[contrast_id])
    f = token_contributions(trace, position, token_id, contrast_id).f
    return RecomputationCheck.from_arrays(trace.dtype, f, captured, abs(logits).max())


@dataclass(frozen=True)
class AttributionBySource:
    """The contributions of all heads at one position, by the position that each is fetched from.

    A head's z is the sum of the values v of all keys, times their attention weights. Each term goes through the head's
    columns of W_O, and through an output norm with its scale in this run.

    Attributes:
        effects: (L, H, T) contributions to the logit; 0 after the query.
        norms: (L, H, T) ‖weight × W_O v‖₂ as it is added to the stream; 0 after the query.
        changed_heads: (L, H) contributions of heads whose z an intervention changes: they have no sources.
    """

    effects: np.ndarray
    norms: np.ndarray
    changed_heads: np.ndarray


@cache_per_trace
def attribution_by_source(
    trace: Trace, position: int, token_id: int, contrast_id: int | None = None
) -> AttributionBySource:
    """Split the heads' `direct_logit_attribution` at a position by the positions that they read."""
    config, attribution = trace.config, direct_logit_attribution(trace, position, token_id, contrast_id)
    effects, norms = np.zeros((2, config.num_layers, config.num_heads, len(trace)))
    changed_heads = np.zeros(attribution.heads.shape)
    visible = slice(position + 1)
    for layer in range(config.num_layers):
        block = f"blocks.{layer}.attn"
        weights = trace[f"{block}.pattern"][:, position, visible].astype(np.float64)  # (H, n)
        values = trace[f"{block}.v"][:, visible].astype(np.float64)  # (G, n, d)
        values = np.repeat(values, config.num_heads // len(values), axis=0)  # (H, n, d)
        effects[layer, :, visible] = weights * np.einsum("hnd,hd->hn", values, attribution.head_directions[layer])
        norms[layer, :, visible] = weights * head_output_norms(trace, layer, values, position)
        is_changed = changed_head_mask(trace, layer, position)
        effects[layer, is_changed] = norms[layer, is_changed] = 0
        changed_heads[layer, is_changed] = attribution.heads[layer, is_changed]
    return AttributionBySource(effects, norms, changed_heads)


def largest_earlier_source(sources: AttributionBySource, query: int) -> tuple[int, int, int] | None:
    """Return layer, head and key of the largest contribution from an earlier token; None if none is above 0."""
    effects = np.nan_to_num(sources.effects[..., :query])
    if not effects.size or effects.max() <= 0:
        return None
    layer, head, key = np.unravel_index(effects.argmax(), effects.shape)
    return int(layer), int(head), int(key)


def source_totals(trace: Trace, position: int, token_id: int, contrast_id: int | None = None) -> np.ndarray:
    """Return what attention takes from each position for a logit, summed over all heads and layers, (position + 1,)."""
    return attribution_by_source(trace, position, token_id, contrast_id).effects.sum((0, 1))[: position + 1]


def contribution_without_source(trace: Trace, position: int, token_id: int, contrast_id: int | None = None) -> float:
    """Return what no attention takes from a token: with `source_totals` it adds up to the logit.

    It is the token's own embedding, the feed-forwards, constants, and heads that interventions change.
    """
    parts = direct_logit_attribution(trace, position, token_id, contrast_id)
    changed_heads = attribution_by_source(trace, position, token_id, contrast_id).changed_heads
    sums = (values.sum() for values in (parts.biases, parts.feed_forward, changed_heads))
    return float(parts.token + parts.positions + sum(sums) + parts.shift + parts.changes)


def source_contribution(trace: Trace, position: int, token_id: int, contrast_id: int | None, key: int) -> Derivation:
    """Derive what all heads of all layers take from a key for a token's logit or logit difference."""
    config, final = trace.config, np.zeros(trace.config.d_model)
    displayed_value = get_element(source_totals(trace, position, token_id, contrast_id), key)
    for layer in range(config.num_layers):
        block = f"blocks.{layer}.attn"
        weights, values, output = (
            read_input(trace, name, *index)[0]
            for name, *index in (
                (f"{block}.pattern", ALL, position, key),
                (f"{block}.v", ALL, key),
                (f"{block}.o_proj.weight",),
            )
        )
        z = weights[:, None] * np.repeat(values, config.num_heads // len(values), axis=0)  # (H, d)
        z[changed_head_mask(trace, layer, position)] = 0
        path = path_to_unembedding(config, layer, "attn")
        final = final + propagate_along_path(trace, (output @ concatenate_heads(z), []), path, position)[0]
    inputs = [
        Input("blocks.*.attn.pattern", (ALL, position, key), (config.num_layers, config.num_heads)),
        Input("blocks.*.attn.v", (ALL, key), (config.num_layers, config.kv_heads, config.d_head)),
        Input("blocks.*.attn.o_proj.weight", (), (config.num_layers, config.d_model, config.num_heads * config.d_head)),
    ]
    name = _("what all heads take from {token}", token=format_token_position(trace, key))
    formula = translate(THROUGH_NORMS[contrast_id is not None], x="Σ W_O (weight · v)")
    line = SourceLine(FILE, "effects[layer, :, visible] = weights")
    return logit_contribution(
        trace, position, token_id, contrast_id, name, displayed_value, formula, (final, inputs), line
    )


def derive_contribution_without_source(
    trace: Trace, position: int, token_id: int, contrast_id: int | None
) -> Derivation:
    """Derive what no attention takes from a token, as the sum of its parts."""
    tokens = position, token_id, contrast_id
    parts = [
        component_contribution(trace, *tokens, name, layer)
        for name, layer in logit_components(trace, ("bias", "feed_forward"))
    ]
    for layer in range(trace.config.num_layers):
        changed_heads = np.flatnonzero(changed_head_mask(trace, layer, position))
        parts += [head_contribution(trace, *tokens, layer, int(head)) for head in changed_heads]
    values = [part.recomputed_value for part in parts]
    working = Calculation(
        _("the token’s own embedding + all feed-forwards + constants"),
        lambda: (
            f"{' + '.join((format_six_digits(values[0]), *map(format_factor, values[1:])))} "
            f"= {format_six_digits(sum(values))}"
        ),
        sum(values),
        unique_inputs(item for part in parts for item in part.working.inputs),
    )
    displayed_value = contribution_without_source(trace, *tokens)
    source = SourceLine(FILE, "return float(parts.token + parts.positions")
    return Derivation(_("what comes from no earlier token"), parts[0].location, displayed_value, working, source)
