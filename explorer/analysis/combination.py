"""Whether the effects of several changes add up: what each does to a next token alone, and what all do together."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.rounding import Check
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace

MEASURES = ("logit", "probability")


@dataclass(frozen=True)
class Combination:
    """A measure of a next token, in the run as it is and in changed ones.

    Attributes:
        before: in the run without changes.
        alone: (N,), with each of N changes alone.
        together: with all of them.
    """

    before: float
    alone: np.ndarray
    together: float

    @property
    def effects(self) -> np.ndarray:
        """(N,) what each change does alone."""
        return self.alone - self.before

    @property
    def sum(self) -> float:
        """What all would do together if their effects added up."""
        return float(self.effects.sum())

    @property
    def joint(self) -> float:
        """What all do together."""
        return self.together - self.before

    @property
    def interaction(self) -> float:
        """joint − sum: 0 where effects add up."""
        return self.joint - self.sum


def combination(comparison: Comparison, position: int, token_id: int, measure: str) -> Combination:
    """Of a run's changes, against the run without: the "logit" or the "probability" of a token after a position.

    The first time it is asked this runs the model once for every change.

    Raises:
        ValueError: the trace knows no model to run again.
    """
    changed, unchanged = comparison.runs
    place = MEASURES.index(measure)

    def measured(found: np.ndarray) -> float:
        return float(np.exp(found[1]) if place else found[0])

    alone = [measured(unchanged.outcome(position, token_id, (edit,))) for edit in changed.edits]
    before, together = (measured(captured(run, position, token_id)) for run in (unchanged, changed))
    return Combination(before, np.array(alone), together)


def captured(trace: Trace, position: int, token_id: int) -> np.ndarray:
    """(2,) logit and ln p of a token, from the captured logits."""
    logits = trace.logits.at(position).astype(np.float64)
    return np.array([logits[token_id], logits[token_id] - np.logaddexp.reduce(logits)])


def again(comparison: Comparison, position: int, token_id: int) -> Check:
    """Logit and ln p in the unchanged run, and with all changes, each run again, held against the captured logits."""
    found = [run.outcome(position, token_id, run.edits) for run in comparison.runs]
    kept = [captured(run, position, token_id) for run in comparison.runs]
    largest = max(float(np.abs(run.logits.at(position)).max()) for run in comparison.runs)
    return Check.of(comparison.trace.dtype, np.array(found), np.array(kept), largest)
