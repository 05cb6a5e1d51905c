"""Direct logit attribution by source token: what all heads take from each token for a logit (Elhage et al. 2021)."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    THROUGH_NORMS,
    changed_head_mask,
    component_contribution,
    direct_logit_attribution,
    has_intervention_additions,
    head_contribution,
    head_output_norms,
    logit_contribution,
    propagate_along_path,
)
from explorer.architecture.formulas import has_logit_bias_terms
from explorer.architecture.residual_stream import path_to_unembedding
from explorer.explain.captured.formulas import concatenate_heads
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import ALL, Calculation, Derivation, Input, read_input, unique_inputs
from explorer.explain.notation import format_factor, format_six_digits, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace, cache_per_trace
from explorer.translations import _, translate

FILE = "explorer/analysis/attribution_by_source.py"


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
    layers, tokens = range(trace.config.num_layers), (position, token_id, contrast_id)
    names = ["token", *["position"] * ("position_embed" in trace), *["shift"] * has_logit_bias_terms(trace.config)]
    names += ["changes"] * has_intervention_additions(trace)
    parts = [component_contribution(trace, *tokens, name) for name in names]
    parts += [component_contribution(trace, *tokens, "feed_forward", layer) for layer in layers]
    if "blocks.0.attn.o_proj.bias" in trace.weights:
        parts += [component_contribution(trace, *tokens, "bias", layer) for layer in layers]
    for layer in layers:
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
