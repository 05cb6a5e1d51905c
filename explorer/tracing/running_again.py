"""A part of a pass, run again on what entered it."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import numpy as np
import torch

from explorer.architecture.stream import block_output
from explorer.state.interventions import Intervention
from explorer.tracing.arrays import as_array, as_arrays
from explorer.tracing.explicit_attention import explicit_attention
from explorer.tracing.hooks import hooked
from explorer.tracing.intervening import Edited
from explorer.tracing.work import go_on
from model.layers.softcap import softcap
from model.overflow import check_finite
from model.transformer_lm import TransformerLM


class _Enough(Exception):
    """What comes later in the block is not asked for."""


def run_again(
    lm: TransformerLM,
    token_ids: Sequence[int],
    edits: Sequence[Intervention],
    kept: Mapping[str, np.ndarray],
    layer: int,
    names: Collection[str],
) -> dict[str, np.ndarray]:
    """Name -> value of some in one of the blocks, as `capture` has them.

    Args:
        kept: of the pass at least what entered the block.
        names: of the values, in that block.
    """
    go_on()
    edited, found = Edited(lm, edits), {}
    edited.passes.ids = list(token_ids)
    taps = {module: name for name, module in lm.taps.items() if name in names}

    def keep(module, inputs, output):
        found[taps[module]] = output
        if len(found) == len(taps):
            raise _Enough

    as_captured = explicit_attention(lm, [layer])
    with edited.passing(), hooked(taps, keep), as_captured, torch.inference_mode(), suppress(_Enough):
        positions = torch.arange(len(token_ids), device=lm.device)[None]
        rope = lm.local_rope if lm.config.turns_locally(layer) else lm.rope
        rotation = rope(positions) if rope else None
        lm.blocks[layer](again(lm, kept[block_output(lm.config, layer - 1)]), rotation, layer=layer)
    return as_arrays(found)


def logits_again(
    lm: TransformerLM, token_ids: Sequence[int], edits: Sequence[Intervention], read: np.ndarray, start: int
) -> np.ndarray:
    """(n, V), the logits after the positions from `start` on.

    Args:
        read: (n, D) what the unembedding reads there.
    """
    go_on()
    edited = Edited(lm, edits)
    edited.passes.ids, edited.passes.start = list(token_ids), start
    with edited.passing(), torch.inference_mode():
        logits = lm.logits(softcap(lm.lm_head(again(lm, read)), lm.config.logit_cap))
    check_finite(logits, lm.dtype)
    return as_array(logits)[0]


def again(lm: TransformerLM, value: np.ndarray) -> torch.Tensor:
    """A captured value as the model had it: (n, D) -> (1, n, D)."""
    return torch.tensor(value, device=lm.device, dtype=lm.dtype)[None]
