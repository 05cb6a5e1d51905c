"""Other places for the tokens to stand, and another speed of turning."""

from typing import ClassVar

from explorer.state.interventions.intervention import Intervention
from model.config import ModelConfig


class Shift(Intervention):
    """All tokens stand the amount of positions later."""

    operation: ClassVar[str] = "shift"
    most: ClassVar[float] = 4096
    whole: ClassVar[bool] = True
    taps: ClassVar[tuple[str, ...]] = ("rope.angles", "position_embed")

    def words(self, config: ModelConfig) -> str:
        return f"positions shifted by {self.amount:,.0f}"


class Base(Intervention):
    """The amount is θ of the rotary angles."""

    operation: ClassVar[str] = "base"
    least: ClassVar[float] = 1
    most: ClassVar[float] = 1e9
    taps: ClassVar[tuple[str, ...]] = ("rope.angles",)

    def words(self, config: ModelConfig) -> str:
        return f"θ = {self.amount:,.10g} instead of {config.rope_theta:,.10g}"
