"""More or less of a value, or none of it."""

import torch

from explorer.tracing.interventions.intervention_hooks import Change, InterventionHooks, Passes
from model.transformer_lm import TransformerLM


class Scaling(InterventionHooks):
    """Of `Scale` and `Zero`."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        def multiply(module, inputs, output):
            return torch.where(passes.chosen(self.edit, output), output * self.edit.factor, output)

        return [(module, multiply) for name, module in lm.taps.items() if self.edit.reaches(name)]
