"""The formula of soft-capped values."""

from dataclasses import dataclass

import numpy as np

from explorer.architecture.logits import softcap_formula
from explorer.explain.calculation import Calculation, Index
from explorer.explain.captured.linear import LinearLayerFormula
from explorer.explain.notation import format_factor, format_number
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class SoftcapFormula:
    """Soft-capping c · tanh(u / c) of the result u of a linear map."""

    symbol: str
    x: LinearLayerFormula
    cap: float
    source: SourceLine

    def calculate(self, trace: Trace, index: Index) -> Calculation:
        plain = LinearLayerFormula("u", self.x.x, self.x.map, self.x.source, self.x.heads).calculate(trace, index)
        value = self.cap * np.tanh(plain.value / self.cap)
        return Calculation(
            f"{self.symbol} = {softcap_formula('u', self.cap)}, {plain.symbols}",
            lambda: (
                f"{plain.numbers()}; {self.symbol} = "
                f"{softcap_formula(format_factor(plain.value), self.cap)} = {format_number(value)}"
            ),
            value,
            plain.inputs,
            plain.sizes,
        )
