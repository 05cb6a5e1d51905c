"""Hooks that shift positions and change the base of rotary angles."""

from torch import Tensor, nn

from explorer.state.errors import UserError
from explorer.tracing.interventions.base import InterventionHooks, ModuleHook, PassContext
from explorer.translations import _
from model.layers.positions import RotaryPositionalEmbedding, rotary_frequencies, rotate_adjacent
from model.transformer_lm import TransformerLM

SINUSOIDAL_BASE = 10000.0


class PositionShiftHooks(InterventionHooks):
    """Hooks of `PositionShift`: position m -> m + n, in closed form except for learned positions."""

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        config, amount = lm.config, self.intervention.amount
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


def angle_shift_hook(rope: RotaryPositionalEmbedding, amount: float) -> ModuleHook:
    """Return the hook that adds the angles of `amount` positions to all rotary angles."""
    offset = amount * rope.frequencies()  # (F,) radians
    return rope.angles, lambda module, inputs, angles: angles + offset.to(angles)


class RopeBaseHooks(InterventionHooks):
    """Hooks of `RopeBaseReplacement`: the angles of the same positions with another θ and the model's RoPE scaling.

    The angles that layers with a window have of their own are not changed.
    """

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        before, after = lm.rope.frequencies(), lm.rope.frequencies(self.intervention.amount)

        def replace_angles(module: nn.Module, inputs: tuple[Tensor], angles: Tensor) -> Tensor:
            positions = (angles[..., :1].cpu().double() / before[0]).round()  # (B, T, 1): the first pair is the fastest
            return (positions * after).to(angles)

        return [(lm.rope.angles, replace_angles)]
