"""Clamping of neurons to a value."""

import re
from typing import ClassVar

import numpy as np

from explorer.interventions.intervention import (
    ForwardPassState,
    Intervention,
    InterventionEffect,
    InterventionHooks,
    ModuleHook,
    ReplaceEffect,
    Text,
    TraceLike,
    format_amount,
    join_token_ids,
)
from explorer.translations import N_, _
from model.config import ModelConfig
from model.transformer_lm import TransformerLM


class ClampHooks(InterventionHooks):
    """Hooks of `Clamp`."""

    def hooks(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        def clamp(module, inputs, output):
            return output.masked_fill(pass_context.selection_mask(self.intervention, output), self.intervention.amount)

        return [(lm.taps[self.intervention.tap], clamp)]


class ClampEffect(ReplaceEffect):
    """Replacement by a constant."""

    def recompute(self, trace: TraceLike, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mask = self.element_mask(value.shape)
        return np.where(mask, self.edit.amount, value), np.where(mask, abs(self.edit.amount), sizes)

    def symbol(self) -> str:
        return _("held at {value}", value=format_amount(self.edit.amount))


class Clamp(Intervention):
    """A neuron's gate set to the amount at every token; or the value before or after the gate."""

    operation: ClassVar[str] = "clamp"
    order: ClassVar[int] = 80
    hooks_class: ClassVar[type[InterventionHooks]] = ClampHooks
    effect_class: ClassVar[type[InterventionEffect]] = ClampEffect
    min_amount: ClassVar[float] = -100
    max_amount: ClassVar[float] = 100
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"blocks\.\d+\.ffn\.(gate_pre|gate|up|hidden)"),
        N_("ffn.gate_pre, ffn.gate, ffn.up or ffn.hidden of a layer, such as blocks.0.ffn.gate.7"),
    )

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        layer, name, part = self.target_labels()
        held = f"{self.amount:.10g}".replace("-", "−")
        if part is None:
            return _("{name} of all neurons of layer {layer} held at {value}", name=name, layer=layer, value=held)
        return _("{name} of {part} of layer {layer} held at {value}", name=name, part=part, layer=layer, value=held)


KINDS = (Clamp,)
