"""Hooks that scale a value, or set it to 0."""

import torch

from explorer.tracing.interventions.base import InterventionHooks, ModuleHook, PassContext
from model.transformer_lm import TransformerLM


class ScaleHooks(InterventionHooks):
    """Hooks of `Scale` and `ZeroAblation`."""

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        def multiply(module, inputs, output):
            return torch.where(
                pass_context.selection_mask(self.intervention, output), output * self.intervention.factor, output
            )

        return [(module, multiply) for name, module in lm.taps.items() if self.intervention.affects(name)]
