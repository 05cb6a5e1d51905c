"""Overview of the model at one token: norms along the residual stream, and contributions to a logit."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.direct_logit_attribution import LogitAttribution, direct_logit_attribution
from explorer.analysis.interventions import apply_intervention_linear_part
from explorer.analysis.norms import apply_linearised_output_norm, compute_norm_divisor
from explorer.analysis.residual import residual_stages
from explorer.analysis.trace_cache import cache_per_trace
from explorer.architecture.block_layout import SUBLAYERS
from explorer.architecture.residual_stream import all_norms, norm_input_tap, residual_update_tap
from explorer.tracing.trace import Trace


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
