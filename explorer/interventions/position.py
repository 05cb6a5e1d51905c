"""Interventions on positions: a shift, and the base of rotary angles."""

from typing import ClassVar

from torch import Tensor, nn

from explorer.errors import UserError
from explorer.interventions.intervention import ForwardPassState, Intervention, ModuleHook, Text, join_token_ids
from explorer.translations import _
from model.config import ModelConfig
from model.layers.positions import RotaryPositionalEmbedding, rotary_frequencies, rotate_adjacent
from model.transformer_lm import TransformerLM

SINUSOIDAL_BASE = 10000.0


def angle_shift_hook(rope: RotaryPositionalEmbedding, amount: float) -> ModuleHook:
    """Return the hook that adds the angles of `amount` positions to all rotary angles."""
    offset = amount * rope.frequencies  # (F,) radians
    return rope.angles, lambda module, inputs, angles: angles + offset.to(angles)


class PositionShift(Intervention):
    """A shift of all positions by the amount n: m -> m + n, in closed form except for learned positions."""

    operation: ClassVar[str] = "shift"
    order: ClassVar[int] = 10
    max_amount: ClassVar[float] = 4096
    is_integer: ClassVar[bool] = True
    taps: ClassVar[tuple[str, ...]] = ("rope.angles", "position_embed")
    is_everywhere: ClassVar[bool] = True

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        return _("positions shifted by {amount:,.0f}", amount=self.amount)

    def hooks(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        config, amount = lm.config, self.amount
        if config.position == "rope":
            return [angle_shift_hook(rope, amount) for rope in (lm.rope, lm.local_rope) if rope is not None]
        if config.position == "sinusoidal":
            # (sin mω, cos mω) rotated by −nω is (sin (m + n)ω, cos (m + n)ω).
            rotation = -amount * rotary_frequencies(SINUSOIDAL_BASE, config.d_model)  # (D / 2,)
            cos, sin = rotation.cos(), rotation.sin()
            return [
                (lm.position_embed, lambda module, inputs, waves: rotate_adjacent(waves, cos.to(waves), sin.to(waves)))
            ]

        def shift_learned(table: nn.Module, inputs: tuple[Tensor], output: Tensor) -> Tensor:
            (positions,) = inputs
            last, furthest = config.context_length - 1, int(positions.max()) + int(amount)
            if furthest > last:
                message = _("this model learned positions 0 to {last} and knows no others, got {got}")
                raise UserError(message.format(last=last, got=furthest))
            return table.forward(positions + int(amount))

        return [(lm.position_embedding, shift_learned)]


class RopeBaseReplacement(Intervention):
    """Replacement of the base θ of rotary angles by the amount, with the model's RoPE scaling.

    The angles that layers with a window have of their own are not changed.
    """

    operation: ClassVar[str] = "base"
    order: ClassVar[int] = 11
    min_amount: ClassVar[float] = 1
    max_amount: ClassVar[float] = 1e9
    taps: ClassVar[tuple[str, ...]] = ("rope.angles",)
    is_everywhere: ClassVar[bool] = True

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        description = _("θ = {theta:,.10g} instead of {trained:,.10g}", theta=self.amount, trained=config.rope_theta)
        return _("{change}, in layers without a window", change=description) if config.local_rope_theta else description

    def hooks(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        rope, before = lm.rope, lm.rope.frequencies
        after = rotary_frequencies(self.amount, rope.d_head, rope.scaling, rope.rotary_dim)

        def replace_angles(module: nn.Module, inputs: tuple[Tensor], angles: Tensor) -> Tensor:
            positions = (angles[..., :1].cpu().double() / before[0]).round()  # (B, T, 1): the first pair is the fastest
            return (positions * after).to(angles)

        return [(rope.angles, replace_angles)]


KINDS = (PositionShift, RopeBaseReplacement)
