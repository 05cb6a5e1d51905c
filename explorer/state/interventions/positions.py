"""Other places for the tokens to stand, and another speed of turning."""

from typing import ClassVar

from explorer.language import _
from explorer.state.interventions.intervention import Intervention, Text, as_ids
from model.config import ModelConfig


class Shift(Intervention):
    """All tokens stand the amount of positions later."""

    operation: ClassVar[str] = "shift"
    most: ClassVar[float] = 4096
    whole: ClassVar[bool] = True
    taps: ClassVar[tuple[str, ...]] = ("rope.angles", "position_embed")
    is_everywhere: ClassVar[bool] = True

    def what(self, config: ModelConfig, text: Text = as_ids) -> str:
        return _("positions shifted by {amount:,.0f}", amount=self.amount)


class Base(Intervention):
    """The amount is θ of the rotary angles."""

    operation: ClassVar[str] = "base"
    least: ClassVar[float] = 1
    most: ClassVar[float] = 1e9
    taps: ClassVar[tuple[str, ...]] = ("rope.angles",)
    is_everywhere: ClassVar[bool] = True

    def what(self, config: ModelConfig, text: Text = as_ids) -> str:
        said = _("θ = {theta:,.10g} instead of {trained:,.10g}", theta=self.amount, trained=config.rope_theta)
        return _("{change}, in layers without a window", change=said) if config.local_rope_theta else said
