"""Another norm in the place of the model's."""

import re
from collections.abc import Sequence
from typing import ClassVar

from explorer.language import N_, _, look_up
from explorer.state.errors import UserError
from explorer.state.interventions.intervention import Intervention, Text, as_ids
from model.config import ModelConfig

NORMS = {  # name -> in words
    "rmsnorm": N_("{name} is an RMSNorm"),
    "layernorm": N_("{name} is a LayerNorm"),
    "none": N_("{name} does not normalise"),
}


class Norm(Intervention):
    """What the norm makes of its input x as another kind of norm, with the model's own gain g, ε, and β if it has one.

    "rmsnorm" is x / √(mean x² + ε) · g, "layernorm" (x − mean x) / √(var x + ε) · g, and β is added to either where the
    model's norm has one; "none" is x · g alone.
    """

    operation: ClassVar[str] = "norm"
    names: ClassVar[str] = "layernorm"
    is_whole: ClassVar[bool] = True
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"final_norm|blocks\.\d+\.(attn|ffn)(_out)?_norm"),
        N_("the whole of final_norm, or of attn_norm, ffn_norm, attn_out_norm or ffn_out_norm of a layer"),
    )

    def __post_init__(self):
        super().__post_init__()
        if self.by not in NORMS:
            raise UserError(_("a norm is one of {kinds}, got {got!r}", kinds=", ".join(NORMS), got=self.by[:80]))

    @property
    def known_by(self) -> str:
        return f"{self.place}*{self.operation}"

    def __str__(self) -> str:
        return f"{self.known_by}*{self.by}"

    def check(self, config: ModelConfig, taps):
        super().check(config, taps)
        if self.tap == "final_norm" and config.norm_placement == "post":
            raise UserError(_("this model has no norm at final_norm: its last layer ends with one, change that"))

    def what(self, config: ModelConfig, text: Text = as_ids) -> str:
        layer, name, _part = self.part()
        name = name if layer is None else _("{name} of layer {layer}", name=name, layer=layer)
        return look_up(NORMS[self.by], name=name)


def norms_in_place(edits: Sequence[Intervention], name: str) -> list[Norm]:
    """Those that stand in the place of a norm of a run, by its name; where two hold at a position, the last does."""
    return [edit for edit in edits if isinstance(edit, Norm) and edit.tap == name]
