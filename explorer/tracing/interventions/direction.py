"""Hooks that change the residual stream along a direction."""

from functools import partial

import torch
from torch import Tensor

from explorer.tracing.arrays import StoredWeights
from explorer.tracing.directions import direction_unit_vector
from explorer.tracing.interventions.base import InterventionHooks, ModuleHook, PassContext
from explorer.tracing.mean_stream import mean_stream
from model.transformer_lm import TransformerLM


class DirectionHooks(InterventionHooks):
    """Base of hooks that change vectors x (…, D) along a unit vector u (D,)."""

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        unit = direction_unit_vector(
            lm.config, StoredWeights(lm).__getitem__, self.intervention.direction, partial(mean_stream, lm)
        )
        unit = torch.tensor(unit, dtype=torch.float32, device=lm.device)

        def transform(module, inputs, output):
            changed = self.transform(output.float(), unit).to(output.dtype)
            return torch.where(pass_context.position_mask(self.intervention, output), changed, output)

        return [(lm.taps[self.intervention.tap], transform)]

    def transform(self, x: Tensor, unit: Tensor) -> Tensor:
        raise NotImplementedError


class RemoveHooks(DirectionHooks):
    """Hooks of `RemoveDirection`: x − (x·u) u."""

    def transform(self, x: Tensor, unit: Tensor) -> Tensor:
        return x - (x @ unit)[..., None] * unit


class AddHooks(DirectionHooks):
    """Hooks of `AddDirection`: x + α ‖x‖ u."""

    def transform(self, x: Tensor, unit: Tensor) -> Tensor:
        return x + self.intervention.amount * torch.linalg.vector_norm(x, dim=-1, keepdim=True) * unit
