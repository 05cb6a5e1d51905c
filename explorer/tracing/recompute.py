"""Recomputation of a part of a pass from its stored input."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import numpy as np
import torch

from explorer.architecture.residual_stream import block_output_tap
from explorer.state.interventions import Intervention
from explorer.tracing.apply_interventions import InterventionSession
from explorer.tracing.arrays import as_array, as_unbatched_arrays
from explorer.tracing.explicit_attention import use_explicit_attention
from explorer.tracing.hooks import forward_hooks
from explorer.tracing.request_budget import check_budget
from model.layers.softcap import softcap
from model.overflow import check_finite
from model.transformer_lm import TransformerLM


class _StopForwardError(Exception):
    """Raised to end a block before values that are not needed."""


def recompute_block(
    lm: TransformerLM,
    token_ids: Sequence[int],
    interventions: Sequence[Intervention],
    stored: Mapping[str, np.ndarray],
    layer: int,
    names: Collection[str],
) -> dict[str, np.ndarray]:
    """Recompute some values of a block as `capture` has them, by name.

    Args:
        stored: values of the pass, at least the input of the block.
        names: of the values, in that block.
    """
    check_budget()
    session, outputs = InterventionSession(lm, interventions), {}
    session.pass_context.ids = list(token_ids)
    taps = {module: name for name, module in lm.taps.items() if name in names}

    def store_output(module, inputs, output):
        outputs[taps[module]] = output
        if len(outputs) == len(taps):
            raise _StopForwardError

    as_captured = use_explicit_attention(lm, [layer])
    with (
        session.active(),
        forward_hooks(taps, store_output),
        as_captured,
        torch.inference_mode(),
        suppress(_StopForwardError),
    ):
        positions = torch.arange(len(token_ids), device=lm.device)[None]
        rope = lm.local_rope if lm.config.uses_local_rope(layer) else lm.rope
        rotation = rope(positions) if rope else None
        lm.blocks[layer](to_tensor(lm, stored[block_output_tap(lm.config, layer - 1)]), rotation, layer=layer)
    return as_unbatched_arrays(outputs)


def recompute_logits(
    lm: TransformerLM,
    token_ids: Sequence[int],
    interventions: Sequence[Intervention],
    final_norm: np.ndarray,
    start: int,
) -> np.ndarray:
    """Recompute the logits after the positions from `start` on, (n, V).

    Args:
        final_norm: (n, D) the input of the unembedding there.
    """
    check_budget()
    session = InterventionSession(lm, interventions)
    session.pass_context.ids, session.pass_context.start = list(token_ids), start
    with session.active(), torch.inference_mode():
        logits = lm.logits(softcap(lm.lm_head(to_tensor(lm, final_norm)), lm.config.logit_cap))
    check_finite(logits, lm.dtype)
    return as_array(logits)[0]


def to_tensor(lm: TransformerLM, value: np.ndarray) -> torch.Tensor:
    """Convert a captured value to the model's type and device: (n, D) -> (1, n, D)."""
    return torch.tensor(value, device=lm.device, dtype=lm.dtype)[None]
