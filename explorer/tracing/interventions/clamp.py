"""Hooks that clamp activations to a value."""

from explorer.tracing.interventions.base import InterventionHooks, ModuleHook, PassContext
from model.transformer_lm import TransformerLM


class ClampHooks(InterventionHooks):
    """Hooks of `Clamp`."""

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        def clamp(module, inputs, output):
            return output.masked_fill(pass_context.selection_mask(self.intervention, output), self.intervention.amount)

        return [(lm.taps[self.intervention.tap], clamp)]
