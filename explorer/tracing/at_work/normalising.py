"""Another kind of norm in the place of the model's."""

import torch
from torch import Tensor, nn

from explorer.tracing.at_work.work import Change, Passes, Work
from model.transformer_lm import TransformerLM


class Normalising(Work):
    """Of `Norm`; the formulas of norms ask `analysis.norms.kinds` which they are."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        def normalise(module, inputs, output):
            (x,) = inputs
            return torch.where(passes.rows(self.edit, output), self.normalised(module, x.float(), output), output)

        return [(lm.taps[self.edit.tap], normalise)]

    def normalised(self, module: nn.Module, x: Tensor, output: Tensor) -> Tensor:
        """What the norm would make of float32 vectors, in the dtype of what it made of them."""
        shift = getattr(module, "bias", None)
        if self.edit.by == "none":
            return (x * module.weight).to(output.dtype)
        if self.edit.by == "layernorm":
            x = x - x.mean(-1, keepdim=True)
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + module.eps)
        x = x.to(output.dtype) * module.weight
        return x if shift is None else x + shift
