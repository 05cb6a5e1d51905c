"""What each token contributes to a prediction, by four methods that need not agree."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from explorer.analysis.rollout import rollout
from explorer.tracing.trace import Trace

METHODS = ("gradient", "integrated", "rollout", "knock_out")
LEAST_TOKENS = 4  # of which ranks are compared


@dataclass(frozen=True)
class TokenContributions:
    """To a logit f at a position, or to its lead over a rival's.

    Attributes:
        by: of each of METHODS (N,), of the N tokens up to the position. Of gradients and knock-out in units of f, above
            0 where the token speaks for it; of rollout shares that sum to 1. Of the last token the knock-out is NaN.
        f, f_baseline: of the run, and of the baseline of integrated gradients.
        arrays: what all was worked out from, see `explorer.tracing.gradients.token_contributions`.
    """

    by: Mapping[str, np.ndarray]
    f: float
    f_baseline: float
    arrays: Mapping[str, np.ndarray]

    @property
    def completeness_error(self) -> float:
        """Σ − (f(x) − f(baseline)) of integrated gradients, which is 0 for infinitely many steps."""
        return float(self.by["integrated"].sum() - (self.f - self.f_baseline))

    def agreement(self, method: str, other: str) -> float:
        """Rank correlation (Spearman) of two methods over all tokens but the last; NaN of fewer than four tokens, and
        where one has all alike."""
        pair = [ranks(self.by[name][:-1]) for name in (method, other)]
        if len(pair[0]) < LEAST_TOKENS or any(np.ptp(each) == 0 for each in pair):
            return float("nan")
        return float(np.corrcoef(*pair)[0, 1])


def token_contributions(trace: Trace, position: int, token_id: int, rival_id: int | None = None) -> TokenContributions:
    """Of the logit of a token after a position; errors are those of `Trace.token_contributions`."""
    found = trace.token_contributions(position, token_id, rival_id)
    x, baseline = found["embed"], found["baseline"]
    f = float(found["f"])
    by = {
        "gradient": (x * found["slope"]).sum(-1),
        "integrated": ((x - baseline) * found["mean_slope"]).sum(-1),
        "rollout": rollout(trace, position)[: position + 1],
        "knock_out": f - found["without"],
    }
    return TokenContributions(by, f, float(found["f_baseline"]), found)


def ranks(values: np.ndarray) -> np.ndarray:
    """Places in their order, from 0; of equal ones the mean of theirs."""
    below = (values[:, None] > values).sum(1)
    return below + ((values[:, None] == values).sum(1) - 1) / 2
