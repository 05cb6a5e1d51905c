"""A part of a pass, run again on what entered it."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from explorer.architecture.stream import block_output
from explorer.state.interventions import Intervention
from explorer.tracing.arrays import as_array
from explorer.tracing.hooks import hooked
from explorer.tracing.intervening import Edited
from explorer.tracing.work import go_on
from model.layers.softcap import softcap
from model.transformer_lm import TransformerLM


def run_again(
    lm: TransformerLM,
    token_ids: Sequence[int],
    edits: Sequence[Intervention],
    kept: Mapping[str, np.ndarray],
    layer: int | None,
) -> dict[str, np.ndarray]:
    """Name -> value of all in one of the blocks, or of the logits, as `capture` has them.

    Args:
        kept: of the pass at least what entered the block, or what the unembedding read.
        layer: of the block; None for the logits.
    """
    go_on()
    edited, found = Edited(lm, edits), {}
    edited.passes.ids = list(token_ids)
    begins = f"blocks.{layer}." if layer is not None else "logits"
    taps = {module: name for name, module in lm.taps.items() if name.startswith(begins)}

    def keep(module, inputs, output):
        found[taps[module]] = output

    def again(name: str) -> torch.Tensor:
        return torch.tensor(kept[name], device=lm.device, dtype=lm.dtype)[None]

    with edited.passing(), hooked(taps, keep), torch.inference_mode():
        if layer is None:
            lm.logits(softcap(lm.lm_head(again("final_norm")), lm.config.logit_cap))
        else:
            positions = torch.arange(len(token_ids), device=lm.device)[None]
            rope = lm.local_rope if lm.config.turns_locally(layer) else lm.rope
            rotation = rope(positions) if rope else None
            lm.blocks[layer](again(block_output(lm.config, layer - 1)), rotation, layer=layer)
    return {name: as_array(output)[0] for name, output in found.items()}
