"""The whole model at one token: how long its vectors are along the way, and what each part adds to a logit."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.attribution import Attribution, attribution
from explorer.analysis.interventions import as_edited
from explorer.analysis.kept import kept_by_trace
from explorer.analysis.norms import added_of, norm_scale
from explorer.analysis.residual import stages
from explorer.architecture.layout import SUBLAYERS
from explorer.architecture.stream import all_norms, input_of, written_by
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Overview:
    """One token's way through L layers of H heads.

    Attributes:
        token, positions: ‖embedding‖₂ of the token, and of the position that is added to it, 0 where none is.
        stream: (S,) ‖residual stream‖₂ at its `stages`: those of a post-norm model's norms too.
        divisors: what each norm of the model divides by, in the order of the data's way.
        writes: (L, 2) ‖what attention and feed-forward add to the stream‖₂.
        head_writes: (L, H) ‖z W_Oᵀ‖₂ of each head's z and its columns of W_O, or of what a norm makes of that.
        adds: (L, 2) what attention, W_O's bias with it, and feed-forward add to the logit.
        parts: the same head by head, and the rest of the logit.
    """

    token: float
    positions: float
    stream: np.ndarray
    divisors: dict[str, float]
    writes: np.ndarray
    head_writes: np.ndarray
    adds: np.ndarray
    parts: Attribution


@kept_by_trace
def overview(trace: Trace, position: int, token_id: int, rival_id: int | None = None) -> Overview:
    """Of the run at `position` and the logit of a token after it, less that of its rival if there is one."""
    config, layers = trace.config, range(trace.config.num_layers)

    def length(name: str) -> float:
        return float(np.linalg.norm(trace[name][position].astype(np.float64)))

    def divisor(name: str) -> float:
        return float(norm_scale(trace, trace[input_of(config, name)][position], name, position))

    def head_lengths(layer: int) -> np.ndarray:
        z = trace[f"blocks.{layer}.attn.z"][:, position].astype(np.float64)  # (H, d)
        output = trace.weights[f"blocks.{layer}.attn.o_proj.weight"][:]
        parts = np.einsum("hd,khd->hk", z, output.reshape(-1, *z.shape))  # (H, D)
        return np.linalg.norm(added_of(trace, layer, "attn", parts, position), axis=-1)

    embedding, added = trace["embed"][position].astype(np.float64), "position_embed" in trace
    if added:
        embedding = embedding - as_edited(trace, "embed", trace["position_embed"][position], position)
    parts = attribution(trace, position, token_id, rival_id)
    return Overview(
        token=float(np.linalg.norm(embedding)),
        positions=length("position_embed") if added else 0.0,
        stream=np.array([length(stage.tap) for stage in stages(trace)]),
        divisors={norm: divisor(norm) for norm in all_norms(config)},
        writes=np.array([[length(written_by(config, layer, part)) for part in SUBLAYERS] for layer in layers]),
        head_writes=np.stack([head_lengths(layer) for layer in layers]),
        adds=np.stack([parts.heads.sum(-1) + parts.biases, parts.feed_forward], axis=-1),
        parts=parts,
    )
