"""Derivations of neurons: logit effects, sparsity, and histograms of activations."""

import math

import numpy as np

from explorer.analysis.activation_statistics import compute_histogram, tap_matrix
from explorer.analysis.feed_forward import NEAR_ZERO_RATIO, RELU_KINDS, neuron_logit_effects, sparsity
from explorer.architecture.residual_stream import path_to_unembedding
from explorer.explain.arithmetic import dot_product
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import ALL, Calculation, Derivation, Input, read_input
from explorer.explain.derived.attribution import THROUGH_NORMS, formula_with_softcap, propagate, unembedding_direction
from explorer.explain.notation import format_number, format_token_id, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import _, ngettext, translate

FEED_FORWARD = "explorer/analysis/feed_forward.py"


def neuron_logit_effect(trace: Trace, layer: int, neuron: int, query: int, token_id: int) -> Derivation:
    """Derive the change of a token's logit per unit of a neuron's hidden value."""
    displayed_value = get_element(neuron_logit_effects(trace, layer, neuron, query), token_id)
    column, from_column = read_input(trace, f"blocks.{layer}.ffn.down_proj.weight", ALL, neuron)
    vector, inputs = propagate(trace, (column, [from_column]), path_to_unembedding(trace.config, layer, "ffn"), query)
    row, from_row = unembedding_direction(trace, token_id, query)
    return Derivation(
        _("what neuron {neuron} of layer {layer} adds for each 1 of its hidden value", neuron=neuron, layer=layer),
        _(
            "after {place}, to the logit of {token}",
            place=format_token_position(trace, query),
            token=format_token_id(trace, token_id),
        ),
        displayed_value,
        dot_product(
            formula_with_softcap(trace, translate(THROUGH_NORMS[0], x=_("column of W_down"))),
            vector,
            row,
            (*inputs, from_row),
        ),
        SourceLine(FEED_FORWARD, "return unembed_component(trace, direction, query)"),
    )


def share_near_zero(trace: Trace, layer: int, inactive: bool) -> Derivation:
    """Derive the fraction of a layer's hidden values near 0, or of neurons near 0 at every token."""
    sparsities = sparsity(trace)
    displayed_value = get_element(sparsities.inactive if inactive else sparsities.near_zero, layer)
    hidden, read = read_input(trace, f"blocks.{layer}.ffn.hidden")
    limit = 0.0 if trace.config.ffn in RELU_KINDS else NEAR_ZERO_RATIO * math.sqrt(float((hidden * hidden).mean()))
    near = np.abs(hidden) <= limit
    near = near.all(0) if inactive else near
    value = float(near.sum()) / near.size
    limit_in_symbols = _("{share:g} · √(mean hidden²)", share=NEAR_ZERO_RATIO) if limit else "0"
    working = Calculation(
        _("how many are at most {limit} in size / how many there are", limit=limit_in_symbols),
        lambda: _(
            "{near:,} of at most {limit} / {size:,} = {value}",
            near=int(near.sum()),
            limit=format_number(limit),
            size=near.size,
            value=format_number(value),
        ),
        value,
        (read,),
    )
    name = _("share of neurons near 0 at every token") if inactive else _("share of hidden values near 0")
    location = ngettext(
        "layer {layer}, over {count} token", "layer {layer}, over all {count} tokens", len(trace), layer=layer
    )
    source = SourceLine(FEED_FORWARD, "shares.append((near.mean(), near.all(0).mean()))")
    return Derivation(name, location, displayed_value, working, source)


def histogram_share(trace: Trace, tap: str, head: int, query: int | None, bin_index: int) -> Derivation:
    """Derive the fraction of values within one bin of the histogram, over all tokens, or at the query."""
    values = tap_matrix(trace, tap, head).astype(float)
    edges, shares = compute_histogram(values, values if query is None else values[query])
    displayed_value, counted_values = (
        get_element(shares, bin_index),
        (values if query is None else values[query]).ravel(),
    )
    last = bin_index == len(shares) - 1
    in_bin = (counted_values >= edges[bin_index]) & (
        (counted_values <= edges[bin_index + 1]) if last else (counted_values < edges[bin_index + 1])
    )
    value = float(in_bin.sum()) / len(counted_values)
    working = Calculation(
        _("how many values lie there / how many there are"),
        lambda: f"{int(in_bin.sum()):,} / {len(counted_values):,} = {format_number(value)}",
        value,
        (Input(tap, (), trace[tap].shape),),
    )
    return Derivation(
        _(
            "share of {tap} from {low} to {high}",
            tap=tap,
            low=format_number(edges[bin_index]),
            high=format_number(edges[bin_index + 1]),
        ),
        _("over all tokens") if query is None else format_token_position(trace, query),
        displayed_value,
        working,
        SourceLine("explorer/analysis/activation_statistics.py", "return edges, counts / counts.sum()"),
    )
