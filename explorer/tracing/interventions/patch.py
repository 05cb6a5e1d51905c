"""Hooks that patch values of another run into a run."""

import torch

from explorer.tracing.interventions.base import InterventionHooks, ModuleHook, PassContext
from model.transformer_lm import TransformerLM


class PatchHooks(InterventionHooks):
    """Hooks of `Patch` and `PatchMean`, after `resolve_patches` has read the values."""

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        patch_values = self.intervention.source

        def patch(module, inputs, output):
            if pass_context.start == 0:
                patch_values.check(pass_context.ids)
            elif pass_context.start >= len(patch_values.prompt):  # what comes after the prompt is left as it is
                return None
            rows = patch_values.rows(pass_context.start, *output.shape[-2:])
            new_values = torch.tensor(rows, device=output.device).to(output.dtype)
            return torch.where(
                pass_context.selection_mask(self.intervention, output) & ~new_values.isnan(), new_values, output
            )

        return [(lm.taps[self.intervention.tap], patch)]
