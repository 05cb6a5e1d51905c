"""The mean over positions in the place of the value at each."""

import torch

from explorer.language import _
from explorer.state.errors import UserError
from explorer.tracing.interventions.intervention_hooks import Change, InterventionHooks, Passes
from model.transformer_lm import TransformerLM


class Averaging(InterventionHooks):
    """Of `Mean`."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        def average(module, inputs, output):
            if passes.start:  # the prompt, with its mean, is in the cache; what comes after it is left as it is
                return None
            over, seen = self.edit.over, output.shape[-2]
            if over is not None and over > seen:
                told = _("the mean is over the prompt’s {over} tokens, and the model sees only {seen}: shorten it")
                raise UserError(told.format(over=over, seen=seen))
            mean = output[..., :over, :].mean(-2, keepdim=True)
            chosen = passes.chosen(self.edit, output)
            if over is not None:
                chosen = chosen & (torch.arange(seen, device=output.device) < over)[:, None]
            return torch.where(chosen, mean, output)

        return [(lm.taps[self.edit.tap], average)]
