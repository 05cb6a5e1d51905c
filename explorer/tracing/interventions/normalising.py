"""Another kind of norm in the place of the model's."""

import torch
from torch import Tensor

from explorer.tracing.interventions.intervention_hooks import Change, InterventionHooks, Passes
from model.offloading import weight_reader
from model.transformer_lm import TransformerLM


class Normalising(InterventionHooks):
    """Of `Norm`; the formulas of norms ask `analysis.norms.kinds` which they are."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        module, names = lm.taps[self.edit.tap], ("weight", "bias")
        kept = {name: weight_reader(lm, f"{self.edit.tap}.{name}") for name in names if hasattr(module, name)}

        def normalise(module, inputs, output):
            (x,) = inputs
            gain, shift = (kept[name]().to(x.device) if name in kept else None for name in names)
            changed = self.normalised(x.float(), gain, shift, module.eps)
            return torch.where(passes.rows(self.edit, output), changed.to(output.dtype), output)

        return [(module, normalise)]

    def normalised(self, x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
        """What the norm would make of float32 vectors."""
        if self.edit.by == "none":
            return x * gain
        if self.edit.by == "layernorm":
            x = x - x.mean(-1, keepdim=True)
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain
        return x if shift is None else x + shift
