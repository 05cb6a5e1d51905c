"""More or less of a value, or none of it."""

import re
from typing import ClassVar

from explorer.state.interventions.axes import axis
from explorer.state.interventions.intervention import Intervention
from model.config import ModelConfig

PLACE = re.compile(r"(?:blocks\.(?P<layer>\d+)\.)?(?P<name>.+)")
SUBLAYERS = {"attn.z": "all heads", "ffn.hidden": "all neurons"}  # what does a sublayer's work, and speaks for itself


class Scale(Intervention):
    """The value × the amount."""

    operation: ClassVar[str] = "scale"
    least: ClassVar[float] = -100
    most: ClassVar[float] = 100

    @property
    def factor(self) -> float:
        return self.amount

    def words(self, config: ModelConfig) -> str:
        if self == ROTATION_OFF:
            return "rotation off"
        layer, name = PLACE.fullmatch(self.tap).group("layer", "name")
        part = f"{axis(self.tap, config)[0]} {self.index}"
        if name in SUBLAYERS:
            what, done = SUBLAYERS[name] if self.index is None else part, "silenced"
        else:
            what, done = name if self.index is None else f"{part} of {name}", "set to 0"
        what += f" of layer {layer}" if layer else ""
        return f"{what} {done}" if self.factor == 0 else f"{what} × {self.factor:.10g}".replace("-", "−")


class Zero(Scale):
    """The value × 0."""

    operation: ClassVar[str] = "zero"
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = 0.0


ROTATION_OFF = Zero("rope.angles")
