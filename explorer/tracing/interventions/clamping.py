"""Neurons held at a value."""

from explorer.tracing.interventions.intervention_hooks import Change, InterventionHooks, Passes
from model.transformer_lm import TransformerLM


class Clamping(InterventionHooks):
    """Of `Clamp`."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        def hold(module, inputs, output):
            return output.masked_fill(passes.chosen(self.edit, output), self.edit.amount)

        return [(lm.taps[self.edit.tap], hold)]
