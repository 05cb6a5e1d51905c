"""Other places for the tokens to stand, and another speed of turning."""

from torch import Tensor, nn

from explorer.language import _
from explorer.state.errors import UserError
from explorer.tracing.interventions.intervention_hooks import Change, InterventionHooks, Passes
from model.layers.rope import RotaryPositionalEmbedding, rotate_adjacent
from model.layers.rope_scaling import rotary_frequencies
from model.transformer_lm import TransformerLM

SINUSOIDAL_BASE = 10000.0


class Shifting(InterventionHooks):
    """Of `Shift`: position m -> m + n, by the closed form where there is one: no table need reach so far."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        config, amount = lm.config, self.edit.amount
        if config.position == "rope":
            return [later(rope, amount) for rope in (lm.rope, lm.local_rope) if rope is not None]
        if config.position == "sinusoidal":
            # (sin mω, cos mω) turned back by nω is (sin (m + n)ω, cos (m + n)ω).
            turn = -amount * rotary_frequencies(SINUSOIDAL_BASE, config.d_model)  # (D / 2,)
            cos, sin = turn.cos(), turn.sin()
            return [
                (lm.position_embed, lambda module, inputs, waves: rotate_adjacent(waves, cos.to(waves), sin.to(waves)))
            ]

        def learned(table: nn.Module, inputs: tuple[Tensor], output: Tensor) -> Tensor:
            (positions,) = inputs
            last, furthest = config.context_length - 1, int(positions.max()) + int(amount)
            if furthest > last:
                told = _("this model learned positions 0 to {last} and knows no others, got {got}")
                raise UserError(told.format(last=last, got=furthest))
            return table.forward(positions + int(amount))

        return [(lm.position_embedding, learned)]


def later(rope: RotaryPositionalEmbedding, amount: float) -> Change:
    """All angles those of positions an amount on."""
    more = amount * rope.frequencies()  # (F,) radians
    return rope.angles, lambda module, inputs, angles: angles + more.to(angles)


class Turning(InterventionHooks):
    """Of `Base`: the angles of the same positions with another θ, slowed as the model slows them; those that layers
    with a window have of their own stay."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        before, after = lm.rope.frequencies(), lm.rope.frequencies(self.edit.amount)

        def turn(module: nn.Module, inputs: tuple[Tensor], angles: Tensor) -> Tensor:
            positions = (angles[..., :1].cpu().double() / before[0]).round()  # (B, T, 1): the first pair is the fastest
            return (positions * after).to(angles)

        return [(lm.rope.angles, turn)]
