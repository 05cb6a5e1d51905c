"""Every captured value, worked out again from the values before it."""

from explorer.analysis.rounding import Check
from explorer.explain.captured.taps import check, formula_of, inputs_of, recompute, sizes, work_out

__all__ = ["Check", "check", "formula_of", "inputs_of", "recompute", "sizes", "work_out"]
