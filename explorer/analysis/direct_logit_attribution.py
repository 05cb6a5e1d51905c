"""Direct logit attribution, the contribution of each component to a next-token logit (Elhage et al. 2021)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from explorer.analysis.norms import (
    apply_linearised_output_norm,
    apply_norm_without_interventions,
    compute_norm_divisor,
    norm_bias,
    subtract_layernorm_mean,
)
from explorer.analysis.residual import residual_stages
from explorer.analysis.trace_cache import cache_per_trace
from explorer.analysis.unembedding import effective_logit_bias, logit_direction
from explorer.architecture.block_layout import SUBLAYERS, block_layout
from explorer.architecture.logits import has_logit_constants
from explorer.architecture.residual_stream import (
    added_taps,
    all_norms,
    block_output_tap,
    norm_input_tap,
    norms_on_residual_stream,
    output_norm,
    output_taps,
    previous_residual_tap,
    residual_taps,
    residual_update_tap,
    sublayers,
    unnormalised_output_tap,
)
from explorer.explain.captured.interventions import added_constant, adds_constant, apply_intervention_linear_part
from explorer.explain.captured.norms import norm_kinds
from explorer.tracing.trace import Trace


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
    return LogitAttribution(token, positions, heads, biases, feed_forward, shift, logit, changes, head_directions)


def attribution_by_kind(trace: Trace, logit_attribution: LogitAttribution) -> dict[str, float]:
    """Return the contribution of each kind of component, summed over layers.

    The kinds are "token", "position", "attention", including the biases of W_O, "feed_forward", "shift", the β of
    the norms and the unembedding's bias, and "changes", constants added by interventions.
    """
    sums = {"token": logit_attribution.token} | (
        {"position": logit_attribution.positions} if "position_embed" in trace else {}
    )
    sums |= {
        "attention": float(logit_attribution.heads.sum() + logit_attribution.biases.sum()),
        "feed_forward": float(logit_attribution.feed_forward.sum()),
    }
    sums |= {"shift": logit_attribution.shift} if has_logit_constants(trace.config) else {}
    return sums | ({"changes": logit_attribution.changes} if has_intervention_additions(trace) else {})


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
class Overview:
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
def overview(trace: Trace, position: int, token_id: int, contrast_id: int | None = None) -> Overview:
    """Return the overview of the run at `position`, for a token's logit or its difference to a contrast token."""
    config, layers = trace.config, range(trace.config.num_layers)

    def tap_norm(name: str) -> float:
        return float(np.linalg.norm(trace[name][position].astype(np.float64)))

    def divisor(name: str) -> float:
        return float(compute_norm_divisor(trace, trace[norm_input_tap(config, name)][position], name, position))

    def head_output_norms(layer: int) -> np.ndarray:
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
    return Overview(
        token=float(np.linalg.norm(embedding)),
        positions=tap_norm("position_embed") if has_positions else 0.0,
        stream=np.array([tap_norm(stage.tap) for stage in residual_stages(trace)]),
        divisors={norm: divisor(norm) for norm in all_norms(config)},
        write_norms=np.array(
            [[tap_norm(residual_update_tap(config, layer, part)) for part in SUBLAYERS] for layer in layers]
        ),
        head_write_norms=np.stack([head_output_norms(layer) for layer in layers]),
        logit_effects=np.stack(
            [logit_attribution.heads.sum(-1) + logit_attribution.biases, logit_attribution.feed_forward], axis=-1
        ),
        attribution=logit_attribution,
    )
