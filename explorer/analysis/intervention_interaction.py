"""Interaction of several interventions: their single effects on a next token, and their joint effect."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.tolerance import Check
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace

MEASURES = ("logit", "probability")


@dataclass(frozen=True)
class InterventionInteraction:
    """A measure of a next token without, with each, and with all interventions.

    Attributes:
        before: without interventions.
        single_values: (N,), with each of N interventions alone.
        joint_value: with all of them.
    """

    before: float
    single_values: np.ndarray
    joint_value: float

    @property
    def effects(self) -> np.ndarray:
        """Effect of each intervention alone, (N,)."""
        return self.single_values - self.before

    @property
    def sum(self) -> float:
        """Sum of the single effects."""
        return float(self.effects.sum())

    @property
    def joint(self) -> float:
        """Effect of all interventions together."""
        return self.joint_value - self.before

    @property
    def interaction(self) -> float:
        """joint − sum; 0 if the effects add up."""
        return self.joint - self.sum


def intervention_interaction(
    comparison: Comparison, position: int, token_id: int, measure: str
) -> InterventionInteraction:
    """Measure the interventions of a run on the "logit" or "probability" of a token after a position.

    The first call runs the model once for every intervention.

    Raises:
        ValueError: the trace has no model to run again.
    """
    changed, unchanged = comparison.runs
    index = MEASURES.index(measure)

    def apply_measure(outcome: np.ndarray) -> float:
        return float(np.exp(outcome[1]) if index else outcome[0])

    single_values = [
        apply_measure(unchanged.outcome(position, token_id, (intervention,))) for intervention in changed.edits
    ]
    before, joint_value = (apply_measure(captured_outcome(run, position, token_id)) for run in (unchanged, changed))
    return InterventionInteraction(before, np.array(single_values), joint_value)


def captured_outcome(trace: Trace, position: int, token_id: int) -> np.ndarray:
    """Return the logit and ln p of a token from the captured logits, (2,)."""
    logits = trace.logits.row(position).astype(np.float64)
    return np.array([logits[token_id], logits[token_id] - np.logaddexp.reduce(logits)])


def check_recomputed_outcomes(comparison: Comparison, position: int, token_id: int) -> Check:
    """Check logit and ln p of both runs, computed by running the model again, against the captured logits."""
    recomputed = [run.outcome(position, token_id, run.edits) for run in comparison.runs]
    captured = [captured_outcome(run, position, token_id) for run in comparison.runs]
    largest = max(float(np.abs(run.logits.row(position)).max()) for run in comparison.runs)
    return Check.from_arrays(comparison.trace.dtype, np.array(recomputed), np.array(captured), largest)
