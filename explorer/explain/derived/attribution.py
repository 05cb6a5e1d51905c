"""Derivations of logit contributions, each propagated from its write into the stream to the unembedding."""

import math

import numpy as np

from explorer.analysis.direct_logit_attribution import LogitAttribution, direct_logit_attribution
from explorer.architecture.logits import logit_constants_label
from explorer.architecture.residual_stream import (
    norm_inputs,
    output_taps,
    path_to_unembedding,
    residual_sum_tap,
    residual_taps,
    residual_taps_onward,
    sublayers,
)
from explorer.explain.arithmetic import dot_product
from explorer.explain.captured import added_constant, recompute
from explorer.explain.captured.formulas import concatenate_heads
from explorer.explain.captured.interventions import apply_intervention_linear_part
from explorer.explain.captured.norms import has_bias, normalise_before_gain
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import ALL, Calculation, Derivation, Input, read_input, unique_inputs
from explorer.explain.derived.attention import output_columns
from explorer.explain.notation import format_number, format_token_position, quote_token
from explorer.explain.source_code import SourceLine
from explorer.explain.tolerance import Check
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate

ATTRIBUTION = "explorer/analysis/direct_logit_attribution.py"
HEADS = "heads[layer] = (z *"
# component -> description, getter of its value in an `Attribution` at a layer, and the line that computes it
LOGIT_COMPONENTS = {
    "token": (N_("what the token’s embedding adds"), lambda a, layer: a.token, "token = float(at_embed)"),
    "position": (N_("what its position adds"), lambda a, layer: a.positions, "positions = float(position_row"),
    "heads": (N_("what all heads of layer {layer} add"), lambda a, layer: a.heads.sum(-1)[layer], HEADS),
    "bias": (
        N_("what the bias of W_O of layer {layer} adds"),
        lambda a, layer: a.biases[layer],
        "biases[layer] = bias @",
    ),
    "attention": (
        N_("what attention of layer {layer} adds"),
        lambda a, layer: a.heads.sum(-1)[layer] + a.biases[layer],
        HEADS,
    ),
    "feed_forward": (
        N_("what the feed-forward of layer {layer} adds"),
        lambda a, layer: a.feed_forward[layer],
        "feed_forward[layer] = value(",
    ),
    "shift": (N_("added by {shifts}"), lambda a, layer: a.shift, "shift += "),
    "changes": (
        N_("what the changes of the run put in"),
        lambda a, layer: a.changes,
        "changes += float(added_constant(trace",
    ),
    "sum": (N_("what all parts together add"), lambda a, layer: a.total, "return float(self.token + self.positions"),
    "logit": (N_("the captured logit"), lambda a, layer: a.logit, "logit = logit_direction("),
}
# Formula of a logit, and of a logit difference.
THROUGH_NORMS = (
    N_("norms({x}) · row of the unembedding; each norm divides by what it did in this run"),
    N_("norms({x}) · row of the unembedding less the rival’s; each norm divides by what it did in this run"),
)
AT_THE_END = (N_("final_norm · row of the unembedding"), N_("final_norm · row of the unembedding less the rival’s"))
CAPPED = (  # a formula, and by what a cap of the logits multiplies
    N_("({formula}) · the whole logit / the same before its cap"),
    N_("({formula}), each row times its whole logit / the same before its cap"),
)
BIAS = (N_("{formula} + its bias"), N_("{formula} + its bias less the rival’s"))
WITH_BIAS = ("shift", "sum", "logit")  # the parts that the bias of the unembedding counts for
Reads = tuple[np.ndarray, list[Input]]  # a vector (D,), and what it is worked out from


def component_contribution(
    trace: Trace, position: int, token_id: int, contrast_id: int | None, component: str, layer: int = 0
) -> Derivation:
    """Derive the contribution of one of `LOGIT_COMPONENTS` to a token's logit or logit difference."""
    template, get_value, line = LOGIT_COMPONENTS[component]
    logit_attribution: LogitAttribution = direct_logit_attribution(trace, position, token_id, contrast_id)
    symbols = (AT_THE_END if component in ("sum", "logit") else THROUGH_NORMS)[contrast_id is not None]
    shifts = logit_constants_label(trace.config) if component == "shift" else ""
    name, formula = translate(template, layer=layer, shifts=shifts), translate(symbols, x="x")
    vector, biased = unembedding_input(trace, component, position, layer), component in WITH_BIAS
    return logit_contribution(
        trace,
        position,
        token_id,
        contrast_id,
        name,
        float(get_value(logit_attribution, layer)),
        formula,
        vector,
        line,
        biased,
    )


def head_contribution(
    trace: Trace, position: int, token_id: int, contrast_id: int | None, layer: int, head: int
) -> Derivation:
    """Derive the contribution of a head to a token's logit or logit difference."""
    displayed_value = get_element(direct_logit_attribution(trace, position, token_id, contrast_id).heads, layer, head)
    z, from_z = read_input(trace, f"blocks.{layer}.attn.z", head, position)
    output, from_output = read_input(trace, f"blocks.{layer}.attn.o_proj.weight", ALL, output_columns(head, len(z)))
    vector = propagate(
        trace, (output @ z, [from_z, from_output]), path_to_unembedding(trace.config, layer, "attn"), position
    )
    name = _("what head {head} of layer {layer} adds", head=head, layer=layer)
    formula = translate(THROUGH_NORMS[contrast_id is not None], x="W_O z")
    return logit_contribution(trace, position, token_id, contrast_id, name, displayed_value, formula, vector, HEADS)


def logit_contribution(
    trace: Trace,
    position: int,
    token_id: int,
    contrast_id: int | None,
    name: str,
    displayed_value: float,
    formula: str,
    vector: Reads,
    line: str,
    biased: bool = False,
) -> Derivation:
    """Derive the product of a vector with the unembedding direction; `biased` includes the bias if there is one."""
    final, inputs = vector
    plus = None
    if biased and trace.config.unembedding_bias:
        plus, from_bias = unembedding_bias(trace, token_id, position)
        inputs, formula = [*inputs, from_bias], translate(BIAS[contrast_id is not None], formula=formula)
        if contrast_id is not None:
            contrast_bias, from_bias = unembedding_bias(trace, contrast_id, position)
            plus, inputs = plus - contrast_bias, [*inputs, from_bias]
    formula = formula_with_softcap(trace, formula, contrast_id)
    row, from_row = unembedding_direction(trace, token_id, position)
    names = {"place": format_token_position(trace, position), "token": quote_token(trace.vocabulary[token_id])}
    location = _("after {place}, to the logit of {token}", **names)
    if contrast_id is not None:
        contrast, from_contrast = unembedding_direction(trace, contrast_id, position)
        row, inputs = row - contrast, [*inputs, from_row]
        from_row = from_contrast
        contrast = quote_token(trace.vocabulary[contrast_id])
        location = _("after {place}, to the logit of {token} less that of {rival}", **names, rival=contrast)
    working = dot_product(f"= {formula}", final, row, (*inputs, from_row), plus)
    return Derivation(name, location, displayed_value, working, SourceLine(ATTRIBUTION, line))


def unembedding_direction(trace: Trace, token_id: int, position: int) -> tuple[np.ndarray, Input]:
    """Return the direction of a token's logit (D,), without its bias, and its source."""
    row, read = read_input(trace, "lm_head.weight", token_id)
    return row * logit_factor(trace, token_id, position), read


def unembedding_bias(trace: Trace, token_id: int, position: int) -> tuple[float, Input]:
    """Return the bias of a token's logit and its source."""
    bias, read = read_input(trace, "lm_head.bias", token_id)
    return float(bias * logit_factor(trace, token_id, position)), read


def logit_factor(trace: Trace, token_id: int, position: int) -> float:
    """Return the factor of interventions and soft-capping on a logit in this run."""
    interventions, cap = (
        apply_intervention_linear_part(trace, "logits", np.ones(trace.config.vocab_size), position)[token_id],
        trace.config.logit_cap,
    )
    if cap is None:
        return float(interventions)
    row, vector = read_input(trace, "lm_head.weight", token_id)[0], read_input(trace, "final_norm", position)[0]
    plain = float(row @ vector)
    if trace.config.unembedding_bias:
        plain += float(read_input(trace, "lm_head.bias", token_id)[0])
    return float(interventions) * (cap * math.tanh(plain / cap) / plain if plain else 1.0)


def formula_with_softcap(trace: Trace, formula: str, contrast_id: int | None = None) -> str:
    """Add the effect of soft-capping to the formula of a logit."""
    return translate(CAPPED[contrast_id is not None], formula=formula) if trace.config.logit_cap else formula


def unembedding_input(trace: Trace, component: str, position: int, layer: int) -> Reads:
    """Return a component's contribution to the input of the unembedding."""
    if component in ("sum", "logit"):
        vector, read = read_input(trace, "final_norm", position)
        return vector, [read]
    if component in ("shift", "changes"):
        return propagate(trace, (np.zeros(trace.config.d_model), []), residual_taps(trace.config), position, component)
    if component in ("token", "position"):
        path = residual_taps_onward(trace.config, "blocks.0.resid_pre")
    elif component == "feed_forward":
        path = path_to_unembedding(trace.config, layer, "ffn")[1:]
    else:
        path = path_to_unembedding(trace.config, layer, "attn")
    return propagate(trace, initial_contribution(trace, component, position, layer), path, position)


def initial_contribution(trace: Trace, component: str, position: int, layer: int) -> Reads:
    """Return a component's vector at the start of its path.

    For embeddings at the first layer, for the feed-forward its output, for attention the output of its linear
    map.
    """
    block = f"blocks.{layer}"
    if component in ("token", "position"):
        embed, read = read_input(trace, "embed", position)
        embed = embed - added_constant(trace, "embed", position)
        if "position_embed" not in trace:
            return embed, [read]
        added, from_positions = read_input(trace, "position_embed", position)
        added = apply_intervention_linear_part(trace, "embed", added, position)
        return (added, [from_positions]) if component == "position" else (embed - added, [read, from_positions])
    if component == "feed_forward":
        vector, read = read_input(trace, f"{block}.ffn.out", position)
        return vector, [read]
    vector, inputs = np.zeros(trace.config.d_model), []
    if component != "bias":
        z, from_z = read_input(trace, f"{block}.attn.z", ALL, position)
        output, from_output = read_input(trace, f"{block}.attn.o_proj.weight")
        vector, inputs = output @ concatenate_heads(z), [from_z, from_output]
    if component != "heads" and f"{block}.attn.o_proj.bias" in trace.weights:
        bias, read = read_input(trace, f"{block}.attn.o_proj.bias")
        vector, inputs = vector + bias, [*inputs, read]
    return vector, inputs


def propagate(trace: Trace, vector: Reads, path: list[str], position: int, addition: str = "") -> Reads:
    """Propagate a vector along a path, through norms with their scales from this run and through interventions.

    Args:
        addition: "shift" adds the β of the norms on the path and on the paths of the sublayers added there;
            "changes" adds the constants of interventions; "" adds nothing.
    """
    current, inputs = vector
    norms = norm_inputs(trace.config, path)
    added = [sublayer for sublayer in sublayers(trace.config) if addition]
    for name in path:
        for sublayer in (pair for pair in added if residual_sum_tap(trace.config, *pair) == name):
            addend, read = propagate(
                trace, (np.zeros_like(current), []), output_taps(trace.config, *sublayer), position, addition
            )
            current, inputs = current + addend, [*inputs, *read]
        if name in norms:
            (x, from_x), (gain, from_gain) = (
                read_input(trace, norms[name], position),
                read_input(trace, f"{name}.weight"),
            )
            current, inputs = (
                normalise_before_gain(trace, current, x, name, position) * gain,
                [*inputs, from_x, from_gain],
            )
            if addition == "shift" and has_bias(trace, name, position).any():
                beta, from_beta = read_input(trace, f"{name}.bias")
                current, inputs = current + beta, [*inputs, from_beta]
        current = apply_intervention_linear_part(trace, name, current, position)
        if addition == "changes" and not name.endswith("ffn.out"):  # what is put in there counts as the feed-forward's
            current = current + added_constant(trace, name, position)
    return current, inputs


def check_component_sum(trace: Trace, position: int, token_id: int, contrast_id: int | None) -> Check:
    """Check the sum of all contributions against the captured logit or logit difference."""
    logit_attribution = direct_logit_attribution(trace, position, token_id, contrast_id)
    ids = [token_id] if contrast_id is None else [token_id, contrast_id]
    logit_sizes = sum(recompute(trace, "logits", (position, i)).sizes for i in ids)
    return Check.from_arrays(
        trace.dtype, logit_attribution.total, logit_attribution.logit, logit_attribution.size + logit_sizes
    )


def head_compensation(
    comparison: Comparison, position: int, token_id: int, contrast_id: int | None, layer: int, head: int
) -> Derivation:
    """Derive the change of a head's contribution to a logit."""
    return _difference(
        *(head_contribution(run, position, token_id, contrast_id, layer, head) for run in comparison.runs)
    )


def component_compensation(
    comparison: Comparison, position: int, token_id: int, contrast_id: int | None, component: str, layer: int
) -> Derivation:
    """Derive the change of the contribution of one of `LOGIT_COMPONENTS`."""
    return _difference(
        *(component_contribution(run, position, token_id, contrast_id, component, layer) for run in comparison.runs)
    )


def _difference(after: Derivation, before: Derivation) -> Derivation:
    value = after.recomputed_value - before.recomputed_value
    working = Calculation(
        _("changed − unchanged, each {formula}", formula=after.working.symbols.removeprefix("= ")),
        lambda: (
            f"{format_number(after.recomputed_value)} − "
            f"{format_number(before.recomputed_value)} = {format_number(value)}"
        ),
        value,
        unique_inputs((*after.working.inputs, *before.working.inputs)),
    )
    return Derivation(after.name, after.location, after.value - before.value, working, after.source)
