"""Interventions on positions: a shift, and the base of rotary angles."""

from typing import ClassVar

from explorer.state.interventions.intervention import Intervention, Text, join_token_ids
from explorer.translations import _
from model.config import ModelConfig


class PositionShift(Intervention):
    """A shift of all positions by the amount."""

    operation: ClassVar[str] = "shift"
    max_amount: ClassVar[float] = 4096
    is_integer: ClassVar[bool] = True
    taps: ClassVar[tuple[str, ...]] = ("rope.angles", "position_embed")
    is_everywhere: ClassVar[bool] = True

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        return _("positions shifted by {amount:,.0f}", amount=self.amount)


class RopeBaseReplacement(Intervention):
    """Replacement of the base θ of rotary angles by the amount."""

    operation: ClassVar[str] = "base"
    min_amount: ClassVar[float] = 1
    max_amount: ClassVar[float] = 1e9
    taps: ClassVar[tuple[str, ...]] = ("rope.angles",)
    is_everywhere: ClassVar[bool] = True

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        description = _("θ = {theta:,.10g} instead of {trained:,.10g}", theta=self.amount, trained=config.rope_theta)
        return _("{change}, in layers without a window", change=description) if config.local_rope_theta else description
