"""Hooks that replace a value by its mean over positions."""

import torch

from explorer.state.errors import UserError
from explorer.tracing.interventions.base import InterventionHooks, ModuleHook, PassContext
from explorer.translations import _
from model.transformer_lm import TransformerLM


class MeanHooks(InterventionHooks):
    """Hooks of `MeanAblation`."""

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        def average(module, inputs, output):
            if pass_context.start:  # the prompt, with its mean, is in the cache; what comes after it is left as it is
                return None
            over, length = self.intervention.over, output.shape[-2]
            if over is not None and over > length:
                message = _("the mean is over the prompt’s {over} tokens, and the model sees only {seen}: shorten it")
                raise UserError(message.format(over=over, seen=length))
            mean = output[..., :over, :].mean(-2, keepdim=True)
            mask = pass_context.selection_mask(self.intervention, output)
            if over is not None:
                mask = mask & (torch.arange(length, device=output.device) < over)[:, None]
            return torch.where(mask, mean, output)

        return [(lm.taps[self.intervention.tap], average)]
