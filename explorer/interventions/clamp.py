"""Clamping of neurons to a value."""

import re
from typing import ClassVar

import numpy as np
from torch import Tensor

from explorer.interventions.intervention import Replacement, Text, TraceLike, format_amount, join_token_ids
from explorer.translations import N_, _
from model.config import ModelConfig


class Clamp(Replacement):
    """A neuron's gate set to the amount at every token; or the value before or after the gate."""

    operation: ClassVar[str] = "clamp"
    order: ClassVar[int] = 80
    min_amount: ClassVar[float] = -100
    max_amount: ClassVar[float] = 100
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"blocks\.\d+\.ffn\.(gate_pre|gate|up|hidden)"),
        N_("ffn.gate_pre, ffn.gate, ffn.up or ffn.hidden of a layer, such as blocks.0.ffn.gate.7"),
    )

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        layer, name, part = self.target_labels()
        held = format_amount(self.amount)
        if part is None:
            return _("{name} of all neurons of layer {layer} held at {value}", name=name, layer=layer, value=held)
        return _("{name} of {part} of layer {layer} held at {value}", name=name, part=part, layer=layer, value=held)

    def changed_value(self, value: Tensor) -> float:
        return self.amount

    def recompute(self, trace: TraceLike, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mask = self.element_mask(value.shape)
        return np.where(mask, self.amount, value), np.where(mask, abs(self.amount), sizes)

    def symbol(self) -> str:
        return _("held at {value}", value=format_amount(self.amount))


KINDS = (Clamp,)
