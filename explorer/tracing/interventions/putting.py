"""Values of another run in the place of a run's own."""

import torch

from explorer.tracing.interventions.intervention_hooks import Change, InterventionHooks, Passes
from model.transformer_lm import TransformerLM


class Putting(InterventionHooks):
    """Of `Patch` and `PatchMean`, with what they put in worked out (`tracing.donation.ready`)."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        donation = self.edit.source

        def put(module, inputs, output):
            if passes.start == 0:
                donation.check(passes.ids)
            elif passes.start >= len(donation.prompt):  # what comes after the prompt is left as it is
                return None
            rows = donation.rows(passes.start, *output.shape[-2:])
            given = torch.tensor(rows, device=output.device).to(output.dtype)
            return torch.where(passes.chosen(self.edit, output) & ~given.isnan(), given, output)

        return [(lm.taps[self.edit.tap], put)]
