"""Contributions of each token to a prediction by four methods, among them attention rollout (Abnar & Zuidema 2020)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from explorer.tracing.trace import Trace


def attention_rollout(trace: Trace, query: int) -> np.ndarray:
    """Return the attention rollout of a query, (T,): weights of all positions, which sum to 1.

    In every layer half of a vector comes from the token itself, along the residual stream, and half from the keys
    of the mean head: Ã = ½ A + ½ I (§3, with rows normalised). This is the query's row of Ã_L … Ã_2 Ã_1.
    """
    row = np.eye(len(trace))[query]
    for layer in reversed(range(trace.config.num_layers)):
        attention = trace[f"blocks.{layer}.attn.pattern"].mean(0, dtype=np.float64)  # (T, T)
        row = 0.5 * (row @ (attention / attention.sum(-1, keepdims=True))) + 0.5 * row
    return row


METHODS = ("gradient", "integrated", "rollout", "knock_out")
MIN_TOKENS = 4  # for a rank correlation


@dataclass(frozen=True)
class TokenContributions:
    """Contributions of tokens to f, a logit at a position or its difference to a contrast token's logit.

    Attributes:
        by_method: for each of METHODS (N,), for the N tokens up to the position. Gradients and knock-out in units
            of f, above 0 if the token raises f; rollout weights sum to 1. The knock-out of the last token is NaN.
        f, f_baseline: f of the run, and of the baseline of integrated gradients.
        arrays: the underlying values, see `explorer.tracing.token_attribution.token_contributions`.
    """

    by_method: Mapping[str, np.ndarray]
    f: float
    f_baseline: float
    arrays: Mapping[str, np.ndarray]

    @property
    def completeness_error(self) -> float:
        """Σ − (f(x) − f(baseline)) of integrated gradients, which tends to 0 with the number of steps."""
        return float(self.by_method["integrated"].sum() - (self.f - self.f_baseline))

    def agreement(self, method: str, other: str) -> float:
        """Return Spearman's rank correlation of two methods over all tokens but the last.

        NaN for fewer than four tokens, and if a method gives all tokens the same value.
        """
        pair = [ranks_with_ties(self.by_method[name][:-1]) for name in (method, other)]
        if len(pair[0]) < MIN_TOKENS or any(np.ptp(token_ranks) == 0 for token_ranks in pair):
            return float("nan")
        return float(np.corrcoef(*pair)[0, 1])


def token_contributions(
    trace: Trace, position: int, token_id: int, contrast_id: int | None = None
) -> TokenContributions:
    """Compute the contributions to the logit of a token after a position, or to a logit difference.

    Raises the errors of `Trace.token_contributions`.
    """
    arrays = trace.token_contributions(position, token_id, contrast_id)
    x, baseline = arrays["embed"], arrays["baseline"]
    f = float(arrays["f"])
    by_method = {
        "gradient": (x * arrays["slope"]).sum(-1),
        "integrated": ((x - baseline) * arrays["mean_slope"]).sum(-1),
        "rollout": attention_rollout(trace, position)[: position + 1],
        "knock_out": f - arrays["without"],
    }
    return TokenContributions(by_method, f, float(arrays["f_baseline"]), arrays)


def ranks_with_ties(values: np.ndarray) -> np.ndarray:
    """Return ranks from 0; ties get their mean rank."""
    below = (values[:, None] > values).sum(1)
    return below + ((values[:, None] == values).sum(1) - 1) / 2
