"""The stream, changed along a direction."""

from functools import partial

import torch
from torch import Tensor

from explorer.tracing.directions import direction
from explorer.tracing.interventions.intervention_hooks import Change, InterventionHooks, Passes
from explorer.tracing.mean_stream import mean_stream
from explorer.tracing.stored_weights import StoredWeights
from model.transformer_lm import TransformerLM


class Directing(InterventionHooks):
    """Vectors x (…, D) and the direction u (D,), of length 1."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        unit = direction(lm.config, StoredWeights(lm).__getitem__, self.edit.recipe, partial(mean_stream, lm))
        unit = torch.tensor(unit, dtype=torch.float32, device=lm.device)

        def change(module, inputs, output):
            changed = self.changed(output.float(), unit).to(output.dtype)
            return torch.where(passes.rows(self.edit, output), changed, output)

        return [(lm.taps[self.edit.tap], change)]

    def changed(self, x: Tensor, unit: Tensor) -> Tensor:
        raise NotImplementedError


class Removing(Directing):
    """Of `Remove`."""

    def changed(self, x: Tensor, unit: Tensor) -> Tensor:
        return x - (x @ unit)[..., None] * unit


class Adding(Directing):
    """Of `Add`."""

    def changed(self, x: Tensor, unit: Tensor) -> Tensor:
        return x + self.edit.amount * torch.linalg.vector_norm(x, dim=-1, keepdim=True) * unit
