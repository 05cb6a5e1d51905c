"""Direct logit attribution: each component's contribution to a logit (Elhage et al. 2021)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.attention import output_projection_columns
from explorer.analysis.logit_lens import effective_logit_bias, logit_direction
from explorer.analysis.residual import (
    apply_linearised_output_norm,
    apply_norm_without_interventions,
    compute_norm_divisor,
    norm_bias,
    residual_stages,
    subtract_layernorm_mean,
)
from explorer.architecture.formulas import has_logit_bias_terms, logit_bias_terms_label
from explorer.architecture.residual_stream import (
    SUBLAYERS,
    added_taps,
    all_norms,
    block_layout,
    block_output_tap,
    norm_input_tap,
    norm_inputs,
    norms_on_residual_stream,
    output_norm,
    output_taps,
    path_to_unembedding,
    previous_residual_tap,
    residual_sum_tap,
    residual_taps,
    residual_taps_onward,
    residual_update_tap,
    sublayers,
    unnormalised_output_tap,
)
from explorer.explain import captured
from explorer.explain.arithmetic import difference, dot_product
from explorer.explain.captured import recompute
from explorer.explain.captured.formulas import (
    active_interventions,
    added_constant,
    adds_constant,
    apply_intervention_linear_part,
    concatenate_heads,
    has_bias,
    norm_kinds,
    normalise_before_gain,
)
from explorer.explain.derivation import (
    ALL,
    Derivation,
    Input,
    RecomputationCheck,
    get_element,
    read_input,
    unique_inputs,
)
from explorer.explain.notation import format_token_position, quote_token
from explorer.explain.source_code import SourceLine
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace, cache_per_trace
from explorer.translations import N_, _, translate


@dataclass(frozen=True)
class LogitAttribution:
    """A logit at one position, or the difference of two logits, as a sum of contributions.

    A contribution is the product of a component's output vector with the unembedding direction, propagated through
    the norms after it. Every norm uses its scale from this run, and soft-capping uses its factor from this run, so
    that both are linear and the contributions sum exactly to the logit. Indirect effects through later sublayers
    count for those sublayers.

    Attributes:
        token: contribution of the token's own embedding.
        positions: contribution of the position embedding; 0 if the model adds none.
        heads: (L, H), each head's z through its columns of W_O.
        biases: (L,), the bias of W_O.
        feed_forward: (L,).
        shift: the β of all norms, and the bias of the unembedding.
        logit: the captured logit or logit difference.
        changes: constants that interventions add to the stream.
        head_directions: (L, H, d), whose product with a head's z is its contribution.
        feed_forward_directions: (L, D), whose product with a feed-forward's output is its contribution.
    """

    token: float
    positions: float
    heads: np.ndarray
    biases: np.ndarray
    feed_forward: np.ndarray
    shift: float
    logit: float
    changes: float
    head_directions: np.ndarray
    feed_forward_directions: np.ndarray

    @property
    def total(self) -> float:
        sums = (values.sum() for values in (self.heads, self.biases, self.feed_forward))
        return float(self.token + self.positions + sum(sums) + self.shift + self.changes)

    @property
    def size(self) -> float:
        """Sum of the absolute contributions."""
        sums = (np.abs(values).sum() for values in (self.heads, self.biases, self.feed_forward))
        return float(abs(self.token) + abs(self.positions) + sum(sums) + abs(self.shift) + abs(self.changes))

    @property
    def error(self) -> float:
        return abs(self.total - self.logit)


@cache_per_trace
def direct_logit_attribution(
    trace: Trace, position: int, token_id: int, contrast_id: int | None = None
) -> LogitAttribution:
    """Decompose the logit of a token after `position`, or its logit difference to a contrast token.

    In a run with interventions, the contributions include those on the path to the logit.
    """
    config, weights = trace.config, trace.weights
    direction, logit = logit_direction(trace, token_id, position), float(trace.logits.token_logits(token_id, position))
    shift = effective_logit_bias(trace, token_id, position)
    if contrast_id is not None:
        direction = direction - logit_direction(trace, contrast_id, position)
        logit = logit - float(trace.logits.token_logits(contrast_id, position))
        shift -= effective_logit_bias(trace, contrast_id, position)

    def value(name: str) -> np.ndarray:
        return trace[name][..., position, :].astype(np.float64)

    def sum_values(*names: str) -> Callable[[], np.ndarray]:
        return lambda: sum(map(value, names))

    changes = 0.0

    def pull_back(name: str, direction: np.ndarray, unchanged: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the direction before the interventions on a value, given the direction after them.

        `unchanged` returns the value before the interventions, for the constant that they add.
        """
        nonlocal changes
        if adds_constant(trace, name):
            changes += float(added_constant(trace, name, unchanged(), position) @ direction)
        return apply_intervention_linear_part(trace, name, direction, position, backwards=True)

    def pull_back_through_norm(name: str, x: str, direction: np.ndarray) -> np.ndarray:
        nonlocal shift
        direction = pull_back(
            name, direction, lambda: apply_norm_without_interventions(trace, name, value(x), position)
        )
        if f"{name}.weight" in weights:
            direction, added = linearise_norm(trace, name, value(x), direction, position)
            shift += added
        return direction

    head_directions = np.zeros((config.num_layers, config.num_heads, config.d_head))
    heads = np.zeros(head_directions.shape[:2])
    biases, feed_forward = np.zeros((2, config.num_layers))
    feed_forward_directions = np.zeros((config.num_layers, config.d_model))

    def add_attention(layer: int, direction: np.ndarray) -> None:
        block = f"blocks.{layer}.attn"
        z, table = value(f"{block}.z"), weights[f"{block}.o_proj.weight"][:]  # (H, d), (D, H d)
        bias = weights.get(f"{block}.o_proj.bias", np.zeros_like(direction))
        out = pull_back(f"{block}.out", direction, lambda: table @ z.reshape(-1) + bias)  # (D,)
        columns = np.einsum("k,ki->i", out, table)  # unlike `@`, without a copy of the table in float64
        head_directions[layer] = columns.reshape(z.shape)
        heads[layer] = (z * head_directions[layer]).sum(-1)
        biases[layer] = bias @ out

    def add_feed_forward(layer: int, direction: np.ndarray) -> None:
        feed_forward_directions[layer] = direction
        feed_forward[layer] = value(f"blocks.{layer}.ffn.out") @ direction

    add_sublayer = {"attn": add_attention, "ffn": add_feed_forward}
    direction = pull_back_through_norm("final_norm", block_output_tap(config, config.num_layers - 1), direction)
    sums, norms = block_layout(config).sums, norms_on_residual_stream(config)
    for layer in reversed(range(config.num_layers)):
        for value_name in reversed(block_layout(config).stream):
            name = f"blocks.{layer}.{value_name}"
            if value_name in norms:
                direction = pull_back_through_norm(name, norm_input_tap(config, name), direction)
                continue
            direction = pull_back(
                name, direction, sum_values(previous_residual_tap(config, name), *added_taps(config, name))
            )
            for sublayer in sums.get(value_name, ()):
                norm, out = output_norm(config, layer, sublayer), unnormalised_output_tap(layer, sublayer)
                add_sublayer[sublayer](
                    layer, direction if norm is None else pull_back_through_norm(norm, out, direction)
                )
    row = weights["token_embedding.weight"][trace.token_ids[position]].astype(np.float64)
    row = row * config.embedding_scale
    position_row = value("position_embed") if "position_embed" in trace else np.zeros_like(row)
    at_embed = value("embed") @ direction
    earlier_changes = changes
    direction = pull_back("embed", direction, lambda: row + position_row)
    positions = float(position_row @ direction)
    token = float(at_embed) - positions - (changes - earlier_changes)
    directions = head_directions, feed_forward_directions
    return LogitAttribution(token, positions, heads, biases, feed_forward, shift, logit, changes, *directions)


def attribution_by_kind(trace: Trace, logit_attribution: LogitAttribution) -> dict[str, float]:
    """Return the contribution of each kind of component, summed over layers.

    The kinds are "token", "position", "attention", including the biases of W_O, "feed_forward", "shift", the β of
    the norms and the unembedding's bias, and "changes", constants added by interventions.
    """
    sums: dict[str, float] = {}
    for component, layer in logit_components(trace, ("attention", "feed_forward")):
        sums[component] = sums.get(component, 0.0) + component_value(logit_attribution, component, layer)
    return sums


def has_intervention_additions(trace: Trace) -> bool:
    """Return whether interventions add a constant to the residual stream."""
    config = trace.config
    written_taps = (name for sublayer in sublayers(config) for name in output_taps(config, *sublayer))
    earlier_taps = (
        name for name in written_taps if not name.endswith("ffn.out")
    )  # constants added to ffn.out count as the feed-forward's
    return any(adds_constant(trace, name) for name in (*residual_taps(config), *earlier_taps))


def linearise_norm(
    trace: Trace, name: str, x: np.ndarray, direction: np.ndarray, position: int
) -> tuple[np.ndarray, float]:
    """Return the direction before a norm and the contribution of its β: norm(x)·direction = x·before + shift.

    The scale of the norm is that of x. Without a norm of this name, the direction is returned unchanged.
    """
    if f"{name}.weight" not in trace.weights:
        return direction, 0.0
    before = subtract_layernorm_mean(direction * trace.weights[f"{name}.weight"], norm_kinds(trace, name, position))
    return before / compute_norm_divisor(trace, x, name, position), float(
        np.sum(norm_bias(trace, name, position) * direction)
    )


@dataclass(frozen=True)
class ForwardPassOverview:
    """The residual stream of one token through L layers of H heads.

    Attributes:
        token, positions: ‖embedding‖₂ of the token, and of the position embedding, 0 if the model adds none.
        stream: (S,) ‖residual stream‖₂ at its `stages`, including the norms of a post-norm model.
        divisors: scale of each norm of the model, in the order of computation.
        write_norms: (L, 2) ‖output of attention and feed-forward added to the stream‖₂.
        head_write_norms: (L, H) ‖z W_Oᵀ‖₂ of each head's z and its columns of W_O, after an output norm if there
            is one.
        logit_effects: (L, 2) contributions of attention, including the bias of W_O, and feed-forward to the logit.
        attribution: the contributions head by head, and the rest of the logit.
    """

    token: float
    positions: float
    stream: np.ndarray
    divisors: dict[str, float]
    write_norms: np.ndarray
    head_write_norms: np.ndarray
    logit_effects: np.ndarray
    attribution: LogitAttribution


@cache_per_trace
def forward_pass_overview(
    trace: Trace, position: int, token_id: int, contrast_id: int | None = None
) -> ForwardPassOverview:
    """Return the overview of the run at `position`, for a token's logit or its difference to a contrast token."""
    config, layers = trace.config, range(trace.config.num_layers)

    def tap_norm(name: str) -> float:
        return float(np.linalg.norm(trace[name][position].astype(np.float64)))

    def divisor(name: str) -> float:
        return float(compute_norm_divisor(trace, trace[norm_input_tap(config, name)][position], name, position))

    def head_norms(layer: int) -> np.ndarray:
        z = trace[f"blocks.{layer}.attn.z"][:, position].astype(np.float64)  # (H, d)
        output = trace.weights[f"blocks.{layer}.attn.o_proj.weight"][:]
        head_outputs = np.einsum("hd,khd->hk", z, output.reshape(-1, *z.shape))  # (H, D)
        return np.linalg.norm(apply_linearised_output_norm(trace, layer, "attn", head_outputs, position), axis=-1)

    embedding, has_positions = trace["embed"][position].astype(np.float64), "position_embed" in trace
    if has_positions:
        embedding = embedding - apply_intervention_linear_part(
            trace, "embed", trace["position_embed"][position], position
        )
    logit_attribution = direct_logit_attribution(trace, position, token_id, contrast_id)
    return ForwardPassOverview(
        token=float(np.linalg.norm(embedding)),
        positions=tap_norm("position_embed") if has_positions else 0.0,
        stream=np.array([tap_norm(stage.tap) for stage in residual_stages(trace)]),
        divisors={norm: divisor(norm) for norm in all_norms(config)},
        write_norms=np.array(
            [[tap_norm(residual_update_tap(config, layer, part)) for part in SUBLAYERS] for layer in layers]
        ),
        head_write_norms=np.stack([head_norms(layer) for layer in layers]),
        logit_effects=np.stack(
            [logit_attribution.heads.sum(-1) + logit_attribution.biases, logit_attribution.feed_forward], axis=-1
        ),
        attribution=logit_attribution,
    )


def head_output_norms(trace: Trace, layer: int, values: np.ndarray, position: int) -> np.ndarray:
    """Return ‖W_O v‖₂ as added to the stream at a position, of values (H, n, d): (H, n).

    ‖W v‖² = v · (Wᵀ W) v, which for long texts is less work than W v.
    """
    heads, d = len(values), values.shape[-1]
    table = trace.weights[f"blocks.{layer}.attn.o_proj.weight"][:].astype(np.float64)  # (D, H d)
    columns = table.reshape(-1, heads, d).transpose(1, 2, 0)  # (H, d, D)
    written = apply_linearised_output_norm(trace, layer, "attn", columns, position)
    products = written @ written.swapaxes(1, 2)  # (H, d, d)
    return np.sqrt(np.maximum(0, np.einsum("hnd,hnd->hn", values @ products, values)))


def changed_head_mask(trace: Trace, layer: int, position: int) -> np.ndarray:
    """Return which heads' z at a position interventions change, (H,) booleans."""
    name = f"blocks.{layer}.attn.z"
    mask = np.zeros(trace.config.num_heads, dtype=bool)
    for edit in active_interventions(trace, name):
        mask |= edit.element_mask(trace.shape(name))[:, position].any(-1)
    return mask


FILE = "explorer/analysis/direct_logit_attribution.py"
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


def component_value(logit_attribution: LogitAttribution, component: str, layer: int | None) -> float:
    """Return the contribution of one of `LOGIT_COMPONENTS`."""
    return float(LOGIT_COMPONENTS[component][1](logit_attribution, layer))


def logit_components(
    trace: Trace, per_layer: Sequence[str] = ("heads", "bias", "feed_forward"), has_changes: bool | None = None
) -> list[tuple[str, int | None]]:
    """Return the `LOGIT_COMPONENTS` that add up to a logit, in the order of the data flow, each with its layer or None.

    Args:
        per_layer: the components of each layer.
        has_changes: whether what interventions add to the stream is one; None: if they add anything.
    """
    has_bias = "blocks.0.attn.o_proj.bias" in trace.weights
    names = [name for name in per_layer if name != "bias" or has_bias]
    if has_changes is None:
        has_changes = has_intervention_additions(trace)
    return [
        ("token", None),
        *[("position", None)] * ("position_embed" in trace),
        *((name, layer) for layer in range(trace.config.num_layers) for name in names),
        *[("shift", None)] * has_logit_bias_terms(trace.config),
        *[("changes", None)] * has_changes,
    ]


# Formula of a logit, and of a logit difference.
THROUGH_NORMS = (
    N_("norms({x}) · row of the unembedding; each norm keeps the divisor of this run"),
    N_("norms({x}) · row of the unembedding less the rival’s; each norm keeps the divisor of this run"),
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
    trace: Trace, position: int, token_id: int, contrast_id: int | None, component: str, layer: int | None = None
) -> Derivation:
    """Derive the contribution of one of `LOGIT_COMPONENTS` to a token's logit or logit difference."""
    template, _get_value, line = LOGIT_COMPONENTS[component]
    logit_attribution: LogitAttribution = direct_logit_attribution(trace, position, token_id, contrast_id)
    symbols = (AT_THE_END if component in ("sum", "logit") else THROUGH_NORMS)[contrast_id is not None]
    shifts = logit_bias_terms_label(trace.config) if component == "shift" else ""
    name, formula = translate(template, layer=layer, shifts=shifts), translate(symbols, x="x")
    vector, biased = unembedding_input(trace, component, position, layer), component in WITH_BIAS
    return logit_contribution(
        trace,
        position,
        token_id,
        contrast_id,
        name,
        component_value(logit_attribution, component, layer),
        formula,
        vector,
        SourceLine(FILE, line),
        biased,
    )


def head_contribution(
    trace: Trace, position: int, token_id: int, contrast_id: int | None, layer: int, head: int
) -> Derivation:
    """Derive the contribution of a head to a token's logit or logit difference."""
    displayed_value = get_element(direct_logit_attribution(trace, position, token_id, contrast_id).heads, layer, head)
    z, from_z = read_input(trace, f"blocks.{layer}.attn.z", head, position)
    output, from_output = read_input(
        trace, f"blocks.{layer}.attn.o_proj.weight", ALL, output_projection_columns(head, len(z))
    )
    vector = propagate_along_path(
        trace, (output @ z, [from_z, from_output]), path_to_unembedding(trace.config, layer, "attn"), position
    )
    name = _("what layer {layer} head {head} adds", head=head, layer=layer)
    formula = translate(THROUGH_NORMS[contrast_id is not None], x="W_O z")
    source = SourceLine(FILE, HEADS)
    return logit_contribution(trace, position, token_id, contrast_id, name, displayed_value, formula, vector, source)


def logit_contribution(
    trace: Trace,
    position: int,
    token_id: int,
    contrast_id: int | None,
    name: str,
    displayed_value: float,
    formula: str,
    vector: Reads,
    line: SourceLine,
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
    return Derivation(name, location, displayed_value, working, line)


def unembedding_direction(trace: Trace, token_id: int, position: int) -> tuple[np.ndarray, Input]:
    """Return the direction of a token's logit (D,), without its bias, and its source."""
    row, read = read_input(trace, "lm_head.weight", token_id)
    return row * intervention_and_softcap_factor(trace, token_id, position), read


def unembedding_bias(trace: Trace, token_id: int, position: int) -> tuple[float, Input]:
    """Return the bias of a token's logit and its source."""
    bias, read = read_input(trace, "lm_head.bias", token_id)
    return float(bias * intervention_and_softcap_factor(trace, token_id, position)), read


def intervention_and_softcap_factor(trace: Trace, token_id: int, position: int) -> float:
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


def unembedding_input(trace: Trace, component: str, position: int, layer: int | None) -> Reads:
    """Return a component's contribution to the input of the unembedding."""
    if component in ("sum", "logit"):
        vector, read = read_input(trace, "final_norm", position)
        return vector, [read]
    if component in ("shift", "changes"):
        return propagate_along_path(
            trace, (np.zeros(trace.config.d_model), []), residual_taps(trace.config), position, component
        )
    if component in ("token", "position"):
        path = residual_taps_onward(trace.config, "blocks.0.resid_pre")
    elif component == "feed_forward":
        path = path_to_unembedding(trace.config, layer, "ffn")[1:]
    else:
        path = path_to_unembedding(trace.config, layer, "attn")
    return propagate_along_path(trace, initial_contribution(trace, component, position, layer), path, position)


def initial_contribution(trace: Trace, component: str, position: int, layer: int | None) -> Reads:
    """Return a component's vector at the start of its path.

    For embeddings at the first layer, for the feed-forward its output, for attention the output of its linear
    map.
    """
    block = f"blocks.{layer}"
    if component in ("token", "position"):
        embed, read = read_input(trace, "embed", position)
        embed = embed - captured.added_constant(trace, "embed", position)
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


def propagate_along_path(trace: Trace, vector: Reads, path: list[str], position: int, addition: str = "") -> Reads:
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
            addend, read = propagate_along_path(
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
            current = current + captured.added_constant(trace, name, position)
    return current, inputs


def check_component_sum(trace: Trace, position: int, token_id: int, contrast_id: int | None) -> RecomputationCheck:
    """Check the sum of all contributions against the captured logit or logit difference."""
    logit_attribution = direct_logit_attribution(trace, position, token_id, contrast_id)
    ids = [token_id] if contrast_id is None else [token_id, contrast_id]
    logit_sizes = sum(recompute(trace, "logits", (position, i)).sizes for i in ids)
    return RecomputationCheck.from_arrays(
        trace.dtype, logit_attribution.total, logit_attribution.logit, logit_attribution.size + logit_sizes
    )


def head_contribution_change(
    comparison: Comparison, position: int, token_id: int, contrast_id: int | None, layer: int, head: int
) -> Derivation:
    """Derive the change of a head's contribution to a logit."""
    return derive_change(
        *(head_contribution(run, position, token_id, contrast_id, layer, head) for run in comparison.runs)
    )


def derive_change(after: Derivation, before: Derivation) -> Derivation:
    """Derive the difference of two contributions."""
    symbols = _("changed − unchanged, each {formula}", formula=after.working.symbols.removeprefix("= "))
    inputs = unique_inputs((*after.working.inputs, *before.working.inputs))
    working = difference(symbols, after.recomputed_value, before.recomputed_value, inputs)
    return Derivation(after.name, after.location, after.value - before.value, working, after.source)
