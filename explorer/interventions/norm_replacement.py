"""Replacement of a model's norm by another kind of norm."""

import re
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from explorer.errors import UserError
from explorer.interventions.intervention import ForwardPassState, Intervention, ModuleHook, Text, join_token_ids
from explorer.translations import N_, _, translate
from model.config import ModelConfig
from model.transformer_lm import TransformerLM
from model.weight_placement import weight_reader

NORMS = {  # name -> in words
    "rmsnorm": N_("{name} is an RMSNorm"),
    "layernorm": N_("{name} is a LayerNorm"),
    "none": N_("{name} does not normalise"),
}


class NormReplacement(Intervention):
    """The output of another kind of norm for the same input x, with the model's gain g, ε, and β if it has one.

    "rmsnorm" is x / √(mean x² + ε) · g, "layernorm" (x − mean x) / √(var x + ε) · g, and β is added to either if
    the model's norm has one; "none" is x · g alone.
    """

    operation: ClassVar[str] = "norm"
    order: ClassVar[int] = 20
    argument_example: ClassVar[str] = "layernorm"
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
    def identity_key(self) -> str:
        return f"{self.location_key}*{self.operation}"

    def __str__(self) -> str:
        return f"{self.identity_key}*{self.by}"

    def check(self, config: ModelConfig, taps):
        super().check(config, taps)
        if self.tap == "final_norm" and config.norm_placement == "post":
            raise UserError(_("this model has no norm at final_norm: its last layer ends with one, change that"))

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        return translate(NORMS[self.by], name=self.target_text())

    def hooks(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        module, names = lm.taps[self.tap], ("weight", "bias")
        readers = {name: weight_reader(lm, f"{self.tap}.{name}") for name in names if hasattr(module, name)}

        def normalise(module, inputs, output):
            (x,) = inputs
            gain, shift = (readers[name]().to(x.device) if name in readers else None for name in names)
            changed = self.normalise(x.float(), gain, shift, module.eps)
            return torch.where(pass_context.position_mask(self, output), changed.to(output.dtype), output)

        return [(module, normalise)]

    def normalise(self, x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
        """Return the output of the replacement norm for float32 vectors."""
        if self.by == "none":
            return x * gain
        if self.by == "layernorm":
            x = x - x.mean(-1, keepdim=True)
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain
        return x if shift is None else x + shift


def active_norm_replacements(interventions: Sequence[Intervention], name: str) -> list[NormReplacement]:
    """Return the replacements of a run's norm by its name; where two apply at a position, the last counts."""
    return [
        intervention
        for intervention in interventions
        if isinstance(intervention, NormReplacement) and intervention.tap == name
    ]


KINDS = (NormReplacement,)
