"""Neurons held open or shut."""

import re
from typing import ClassVar

from explorer.language import N_, _
from explorer.state.interventions.intervention import Intervention, Text, as_ids
from model.config import ModelConfig


class Clamp(Intervention):
    """The amount in the place of a neuron's gate, whatever the token is; or of what comes before or after the gate."""

    operation: ClassVar[str] = "clamp"
    least: ClassVar[float] = -100
    most: ClassVar[float] = 100
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"blocks\.\d+\.ffn\.(gate_pre|gate|up|hidden)"),
        N_("ffn.gate_pre, ffn.gate, ffn.up or ffn.hidden of a layer, such as blocks.0.ffn.gate.7"),
    )

    def what(self, config: ModelConfig, text: Text = as_ids) -> str:
        layer, name, part = self.part()
        held = f"{self.amount:.10g}".replace("-", "−")
        if part is None:
            return _("{name} of all neurons of layer {layer} held at {value}", name=name, layer=layer, value=held)
        return _("{name} of {part} of layer {layer} held at {value}", name=name, part=part, layer=layer, value=held)
