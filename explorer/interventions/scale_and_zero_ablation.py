"""Scaling of a value, and zero ablation."""

from typing import ClassVar

import numpy as np
from torch import Tensor

from explorer.interventions.intervention import Intervention, Text, TraceLike, format_amount, join_token_ids
from explorer.translations import N_, _, translate
from model.config import ModelConfig

# What is said of a factor of 0, of another, and of the mean. Of what does a sublayer's work, which speaks for itself:
# the value's name in its layer, and whether it is one part -> the templates
SUBLAYERS = {
    ("attn.z", False): (
        N_("all heads of layer {layer}: off"),
        N_("all heads of layer {layer} × {factor}"),
        N_("all heads of layer {layer}: mean"),
    ),
    ("attn.z", True): (
        N_("layer {layer} head {index}: off"),
        N_("layer {layer} head {index} × {factor}"),
        N_("layer {layer} head {index}: mean"),
    ),
    ("ffn.hidden", False): (
        N_("all neurons of layer {layer}: off"),
        N_("all neurons of layer {layer} × {factor}"),
        N_("all neurons of layer {layer}: mean"),
    ),
    ("ffn.hidden", True): (
        N_("layer {layer} neuron {index}: off"),
        N_("layer {layer} neuron {index} × {factor}"),
        N_("layer {layer} neuron {index}: mean"),
    ),
}
OTHER_VALUE = (N_("{name} set to 0"), N_("{name} × {factor}"))


class Scale(Intervention):
    """The value × the amount."""

    operation: ClassVar[str] = "scale"
    order: ClassVar[int] = 70
    min_amount: ClassVar[float] = -100
    max_amount: ClassVar[float] = 100

    @property
    def factor(self) -> float:
        return self.amount

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        if self.identity_key.replace(f"@{self.positions}", "") == ROTATION_OFF.identity_key:
            return _("rotation off")
        layer, name, _part = self.target_labels()
        off, scaled, *_mean = SUBLAYERS.get((name, self.index is not None), OTHER_VALUE)
        template, factor = off if self.factor == 0 else scaled, format_amount(self.factor)
        return translate(template, name=self.target_text(), layer=layer, index=self.index, factor=factor)

    def changed_value(self, value: Tensor) -> Tensor:
        return value * self.factor

    def recompute(self, trace: TraceLike, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        factors = np.where(self.element_mask(value.shape), float(self.factor), 1.0)
        return value * factors, sizes * np.abs(factors)

    def symbol(self) -> str:
        return f"× {format_amount(self.factor)}"

    def apply_linear(self, trace: TraceLike, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        return self.scale_selected(x, position, self.factor)


class ZeroAblation(Scale):
    """The value × 0."""

    operation: ClassVar[str] = "zero"
    order: ClassVar[int] = 71
    min_amount: ClassVar[float] = 0.0
    max_amount: ClassVar[float] = 0.0


ROTATION_OFF = ZeroAblation("rope.angles")


KINDS = (Scale, ZeroAblation)
