"""More or less of a value, or none of it."""

from typing import ClassVar

from explorer.language import N_, _, look_up
from explorer.state.interventions.intervention import Intervention, Text, as_ids
from model.config import ModelConfig

# What is said of a factor of 0, and of another. Of what does a sublayer's work, which speaks for itself: the value's
# name in its layer, and whether it is one part -> both templates
SUBLAYERS = {
    ("attn.z", False): (N_("all heads of layer {layer} silenced"), N_("all heads of layer {layer} × {factor}")),
    ("attn.z", True): (N_("head {index} of layer {layer} silenced"), N_("head {index} of layer {layer} × {factor}")),
    ("ffn.hidden", False): (N_("all neurons of layer {layer} silenced"), N_("all neurons of layer {layer} × {factor}")),
    ("ffn.hidden", True): (
        N_("neuron {index} of layer {layer} silenced"),
        N_("neuron {index} of layer {layer} × {factor}"),
    ),
}
# of any other value: whether it is in a layer, and whether it is one part -> both templates
VALUES = {
    (False, False): (N_("{name} set to 0"), N_("{name} × {factor}")),
    (False, True): (N_("{part} of {name} set to 0"), N_("{part} of {name} × {factor}")),
    (True, False): (N_("{name} of layer {layer} set to 0"), N_("{name} of layer {layer} × {factor}")),
    (True, True): (
        N_("{part} of {name} of layer {layer} set to 0"),
        N_("{part} of {name} of layer {layer} × {factor}"),
    ),
}


class Scale(Intervention):
    """The value × the amount."""

    operation: ClassVar[str] = "scale"
    least: ClassVar[float] = -100
    most: ClassVar[float] = 100

    @property
    def factor(self) -> float:
        return self.amount

    def what(self, config: ModelConfig, text: Text = as_ids) -> str:
        if self.known_by.replace(f"@{self.positions}", "") == ROTATION_OFF.known_by:
            return _("rotation off")
        layer, name, part = self.part()
        is_part, factor = self.index is not None, f"{self.factor:.10g}".replace("-", "−")
        off, scaled = SUBLAYERS.get((name, is_part)) or VALUES[layer is not None, is_part]
        said = off if self.factor == 0 else scaled
        return look_up(said, name=name, layer=layer, index=self.index, part=part, factor=factor)


class Zero(Scale):
    """The value × 0."""

    operation: ClassVar[str] = "zero"
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = 0.0


ROTATION_OFF = Zero("rope.angles")
