"""Numbers that a cap keeps within bounds."""

from dataclasses import dataclass

import numpy as np

from explorer.architecture.caps import written
from explorer.explain.captured.linear import Linear
from explorer.explain.notation import factor, number
from explorer.explain.source import Source
from explorer.explain.working import Index, Working
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Capped:
    """c · tanh(u / c) of what a linear map gives, u."""

    symbol: str
    x: Linear
    cap: float
    source: Source

    def working(self, trace: Trace, at: Index) -> Working:
        plain = Linear("u", self.x.x, self.x.map, self.x.source, self.x.heads).working(trace, at)
        value = self.cap * np.tanh(plain.value / self.cap)
        return Working(
            f"{self.symbol} = {written('u', self.cap)}, {plain.symbols}",
            lambda: f"{plain.numbers()}; {self.symbol} = {written(factor(plain.value), self.cap)} = {number(value)}",
            value,
            plain.inputs,
            plain.sizes,
        )
