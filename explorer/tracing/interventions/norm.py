"""Hooks that replace a model's norm by another kind of norm."""

import torch
from torch import Tensor

from explorer.tracing.interventions.base import InterventionHooks, ModuleHook, PassContext
from model.offloading import weight_reader
from model.transformer_lm import TransformerLM


class NormReplacementHooks(InterventionHooks):
    """Hooks of `NormReplacement`; the formulas of norms take the kind from `analysis.norms.kinds`."""

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        module, names = lm.taps[self.intervention.tap], ("weight", "bias")
        readers = {
            name: weight_reader(lm, f"{self.intervention.tap}.{name}") for name in names if hasattr(module, name)
        }

        def normalise(module, inputs, output):
            (x,) = inputs
            gain, shift = (readers[name]().to(x.device) if name in readers else None for name in names)
            changed = self.normalise(x.float(), gain, shift, module.eps)
            return torch.where(pass_context.position_mask(self.intervention, output), changed.to(output.dtype), output)

        return [(module, normalise)]

    def normalise(self, x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
        """Return the output of the replacement norm for float32 vectors."""
        if self.intervention.by == "none":
            return x * gain
        if self.intervention.by == "layernorm":
            x = x - x.mean(-1, keepdim=True)
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain
        return x if shift is None else x + shift
