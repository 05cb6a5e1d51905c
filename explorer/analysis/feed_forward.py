"""Feed-forward neurons: activations, output norms, logit effects and sparsity."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    THROUGH_NORMS,
    direct_logit_attribution,
    formula_with_softcap,
    logit_contribution,
    propagate_along_path,
    unembedding_direction,
)
from explorer.analysis.logit_lens import unembed_component
from explorer.analysis.residual import apply_linearised_output_norm, compute_norm_divisor, subtract_layernorm_mean
from explorer.architecture.residual_stream import norm_inputs, path_to_unembedding, sublayer_input_tap
from explorer.explain.arithmetic import dot_product
from explorer.explain.captured import derive
from explorer.explain.captured.formulas import ACTIVATIONS, added_constant, apply_intervention_linear_part, norm_kinds
from explorer.explain.derivation import ALL, Calculation, Derivation, RecomputationCheck, get_element, read_input
from explorer.explain.notation import format_six_digits, format_token_id, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace, cache_per_trace
from explorer.translations import _, ngettext, translate


@dataclass(frozen=True)
class LayerNeurons:
    """All F neurons of a layer at one token.

    Attributes:
        pre: (F,) input of the activation function.
        active: (F,) output of the activation function.
        up: (F,) factor on `active`, None without a gate.
        hidden: (F,) their product, or `active` itself.
        output_norms: (F,) |hidden| · ‖column of W_down‖, the column after an output norm if there is one: the norm
            of the vector that each neuron adds to the stream.
    """

    pre: np.ndarray
    active: np.ndarray
    up: np.ndarray | None
    hidden: np.ndarray
    output_norms: np.ndarray

    def top(self, max_count: int) -> np.ndarray:
        """Return the neurons with the largest output norms, largest first; ties by lower number."""
        return np.argsort(-self.output_norms, kind="stable")[:max_count]


def layer_neurons(trace: Trace, layer: int, query: int) -> LayerNeurons:
    """Return all neurons of a layer at one token."""
    block = f"blocks.{layer}.ffn"
    up, hidden = trace[f"{block}.up"][query], trace[f"{block}.hidden"][query]
    gated = f"{block}.gate" in trace
    columns = apply_linearised_output_norm(
        trace, layer, "ffn", trace.weights[f"{block}.down_proj.weight"][:].T, query
    )  # (F, D)
    output_norms = np.abs(hidden) * np.linalg.norm(columns, axis=-1)
    if gated:
        return LayerNeurons(trace[f"{block}.gate_pre"][query], trace[f"{block}.gate"][query], up, hidden, output_norms)
    return LayerNeurons(up, hidden, None, hidden, output_norms)


@dataclass(frozen=True)
class Neuron:
    """One neuron at one token, recomputed in float64 from the layer's input and the neuron's own weights.

    Attributes:
        read: tap of the layer's input.
        pre, active, up, hidden: as in `LayerNeurons`.
        error: |hidden - captured|.
    """

    read: str
    pre: float
    active: float
    up: float | None
    hidden: float
    error: float


def recompute_neuron(trace: Trace, layer: int, number: int, query: int) -> Neuron:
    """Return a neuron's values at one token, recomputed from its weights."""
    block = f"blocks.{layer}.ffn"
    read = sublayer_input_tap(trace.config, layer, "ffn")
    x = trace[read][query].astype(np.float64)

    def project(name: str) -> float:
        weight, bias = (trace.weights.get(f"{block}.{name}_proj.{part}") for part in ("weight", "bias"))
        return float(weight[number] @ x + (0.0 if bias is None else bias[number]))

    _name, activation = ACTIVATIONS[trace.config.ffn]
    gated = trace.config.is_gated
    pre = project("gate" if gated else "up")
    up = project("up") if gated else None
    active = float(activation(np.array(pre)))
    hidden = active * up if gated else active
    return Neuron(read, pre, active, up, hidden, abs(hidden - float(trace[f"{block}.hidden"][query, number])))


def derive_neuron(trace: Trace, layer: int, number: int, query: int, steps: Sequence[str]) -> tuple[Derivation, ...]:
    """Derive some steps of a neuron, such as "gate_pre" and "gate".

    The last one's note has the other steps up to the hidden value, and the element of the layer's input that has the
    largest term in the first.
    """
    block = f"blocks.{layer}.ffn"
    names = ("gate_pre", "gate", "up", "hidden") if trace.config.is_gated else ("up", "hidden")
    derivations = {name: derive(trace, f"{block}.{name}", (query, number)) for name in names}
    read = sublayer_input_tap(trace.config, layer, "ffn")
    weight = trace.weights[f"{block}.{'gate' if trace.config.is_gated else 'up'}_proj.weight"][number]
    dim = int(np.abs(weight * trace[read][query]).argmax())
    largest = derive(trace, read, (query, dim)).working.numbers()
    others = [derivation.working.numbers() for name, derivation in derivations.items() if name not in steps]
    note = [_("x[{dim}], the largest term: {numbers}", dim=dim, numbers=largest), *others]
    *first, last = (derivations[name] for name in steps)
    return *first, replace(last, note="\n".join(note))


RELU_KINDS = ("relu", "relu2")  # the feed-forwards whose activation is exactly 0 below 0
NEAR_ZERO_RATIO = 0.1  # of the layer's root mean square


@dataclass(frozen=True)
class ActivationSparsity:
    """Fractions of hidden values near zero, by layer.

    A value counts as near zero if it is at most `NEAR_ZERO_RATIO` of the root mean square of its layer's values in
    this run; of ReLU, if it is exactly 0. Of normally distributed values, `NORMAL_SHARE` would be.

    Attributes:
        near_zero: (L,) fraction of the layer's T · F values.
        inactive: (L,) fraction of neurons near zero at every token of this run (for ReLU: dead in this run).
    """

    near_zero: np.ndarray
    inactive: np.ndarray


NORMAL_SHARE = math.erf(NEAR_ZERO_RATIO / math.sqrt(2))


@cache_per_trace
def sparsity(trace: Trace) -> ActivationSparsity:
    """Return the fractions of hidden values near zero in each layer."""
    shares = []
    for layer in range(trace.config.num_layers):
        size = np.abs(trace[f"blocks.{layer}.ffn.hidden"])  # (T, F)
        limit = 0.0 if trace.config.ffn in RELU_KINDS else NEAR_ZERO_RATIO * np.sqrt(np.mean(size**2, dtype=np.float64))
        near = size <= limit
        shares.append((near.mean(), near.all(0).mean()))
    return ActivationSparsity(*np.transpose(shares))


def neuron_logit_effects(trace: Trace, layer: int, number: int, query: int) -> np.ndarray:
    """Return the change of every token's logit after `query` per unit of a neuron's hidden value, (V,).

    This is the neuron's output direction, its column of W_down, propagated to the unembedding through the
    norms, with their gains and their scales from this run, and through interventions. Effects through later
    sublayers are not included.
    """
    direction = trace.weights[f"blocks.{layer}.ffn.down_proj.weight"][:, number].astype(np.float64)  # (D,)
    path = path_to_unembedding(trace.config, layer, "ffn")
    norms = norm_inputs(trace.config, path)
    for tap in path:
        if tap in norms:
            direction = (
                subtract_layernorm_mean(direction, norm_kinds(trace, tap, query)) * trace.weights[f"{tap}.weight"]
            )
            direction = direction / compute_norm_divisor(trace, trace[norms[tap]][query], tap, query)
        direction = apply_intervention_linear_part(trace, tap, direction, query)
    return unembed_component(trace, direction, query)


FILE = "explorer/analysis/feed_forward.py"


def neuron_logit_effect(trace: Trace, layer: int, neuron: int, query: int, token_id: int) -> Derivation:
    """Derive what a neuron adds to a token's logit, with its hidden value in this run."""
    hidden, from_hidden = read_input(trace, f"blocks.{layer}.ffn.hidden", query, neuron)
    displayed_value = float(hidden) * get_element(neuron_logit_effects(trace, layer, neuron, query), token_id)
    column, from_column = read_input(trace, f"blocks.{layer}.ffn.down_proj.weight", ALL, neuron)
    vector, inputs = propagate_along_path(
        trace, (hidden * column, [from_hidden, from_column]), path_to_unembedding(trace.config, layer, "ffn"), query
    )
    row, from_row = unembedding_direction(trace, token_id, query)
    return Derivation(
        _("what neuron {neuron} of layer {layer} adds", neuron=neuron, layer=layer),
        _(
            "after {place}, to the logit of {token}",
            place=format_token_position(trace, query),
            token=format_token_id(trace, token_id),
        ),
        displayed_value,
        dot_product(
            formula_with_softcap(trace, translate(THROUGH_NORMS[0], x=_("hidden · column of W_down"))),
            vector,
            row,
            (*inputs, from_row),
        ),
        SourceLine(FILE, "return unembed_component(trace, direction, query)"),
    )


@cache_per_trace
def neuron_contributions(trace: Trace, query: int, token_id: int, contrast_id: int | None = None) -> np.ndarray:
    """Return what every neuron adds to a token's logit after `query`, or to its difference to a contrast token, (L, F).

    As in direct logit attribution, with the scales of norms from this run. A layer's neurons, the bias of W_down and
    what interventions add to the output sum to the feed-forward's contribution.
    """
    config = trace.config
    contributions = np.zeros((config.num_layers, config.d_ff))
    for layer, direction in enumerate(output_directions(trace, query, token_id, contrast_id)):
        table = trace.weights[f"blocks.{layer}.ffn.down_proj.weight"][:]  # (D, F), a layer at a time
        contributions[layer] = np.einsum("d,df->f", direction, table) * trace[f"blocks.{layer}.ffn.hidden"][query]
    return contributions


def output_directions(trace: Trace, query: int, token_id: int, contrast_id: int | None) -> list[np.ndarray]:
    """Return each layer's direction (D,) whose product with an output of W_down is its contribution to the logit."""
    directions = direct_logit_attribution(trace, query, token_id, contrast_id).feed_forward_directions
    return [
        apply_intervention_linear_part(trace, f"blocks.{layer}.ffn.out", direction, query, backwards=True)
        for layer, direction in enumerate(directions)
    ]


def check_neuron_sum(trace: Trace, query: int, token_id: int, contrast_id: int | None) -> RecomputationCheck:
    """Check each layer's sum over neurons, with its constants, against the feed-forward's contribution."""
    expected = direct_logit_attribution(trace, query, token_id, contrast_id)
    directions = output_directions(trace, query, token_id, contrast_id)
    sums = neuron_contributions(trace, query, token_id, contrast_id).sum(-1)
    sizes = np.zeros(len(sums))
    for layer, direction in enumerate(directions):
        block = f"blocks.{layer}.ffn"
        table, hidden = trace.weights[f"{block}.down_proj.weight"][:], trace[f"{block}.hidden"][query]
        bias = trace.weights.get(f"{block}.down_proj.bias", np.zeros(trace.config.d_model))
        output = np.einsum("df,f->d", table, hidden.astype(np.float64)) + bias
        constant = added_constant(trace, f"{block}.out", output, query)
        sums[layer] += bias @ direction + np.sum(constant * expected.feed_forward_directions[layer])
        sizes[layer] = np.linalg.norm(direction) * (
            np.abs(hidden) @ np.linalg.norm(table, axis=0) + np.linalg.norm(bias)
        ) + abs(expected.feed_forward[layer])
    return RecomputationCheck.from_arrays(trace.dtype, sums, expected.feed_forward, sizes)


def neuron_contribution(
    trace: Trace, query: int, token_id: int, contrast_id: int | None, layer: int, neuron: int
) -> Derivation:
    """Derive what a neuron adds to a token's logit or logit difference."""
    displayed_value = get_element(neuron_contributions(trace, query, token_id, contrast_id), layer, neuron)
    hidden, from_hidden = read_input(trace, f"blocks.{layer}.ffn.hidden", query, neuron)
    column, from_column = read_input(trace, f"blocks.{layer}.ffn.down_proj.weight", ALL, neuron)
    vector = propagate_along_path(
        trace, (hidden * column, [from_hidden, from_column]), path_to_unembedding(trace.config, layer, "ffn"), query
    )
    name = _("what neuron {neuron} of layer {layer} adds", neuron=neuron, layer=layer)
    formula = translate(THROUGH_NORMS[contrast_id is not None], x=_("hidden · column of W_down"))
    source = SourceLine(FILE, "contributions[layer] = np.einsum(")
    return logit_contribution(trace, query, token_id, contrast_id, name, displayed_value, formula, vector, source)


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
            limit=format_six_digits(limit),
            size=near.size,
            value=format_six_digits(value),
        ),
        value,
        (read,),
    )
    name = _("share of neurons near 0 at every token") if inactive else _("share of hidden values near 0")
    location = ngettext(
        "layer {layer}, over {count} token", "layer {layer}, over all {count} tokens", len(trace), layer=layer
    )
    source = SourceLine(FILE, "shares.append((near.mean(), near.all(0).mean()))")
    return Derivation(name, location, displayed_value, working, source)
