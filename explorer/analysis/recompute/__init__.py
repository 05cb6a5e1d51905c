"""Every captured value, worked out again from the values before it."""

from explorer.analysis.recompute.taps import formula_of, inputs_of, max_error, recompute, work_out

__all__ = ["formula_of", "inputs_of", "max_error", "recompute", "work_out"]
