"""The model's predictions of what comes next."""

from dataclasses import dataclass

import numpy as np

from explorer.trace import Trace
from model.sampling import sampling_distribution


@dataclass(frozen=True)
class NextToken:
    """The distribution of the token after one position.

    Attributes:
        plain: softmax of the logits (V,), before any setting.
        sampled: what a token is drawn from (V,), after temperature and top-k.
        actual: the token that does come next in the run, None at its end.
    """

    plain: np.ndarray
    sampled: np.ndarray
    actual: int | None

    def top(self, n: int) -> np.ndarray:
        """Ids of the n likeliest tokens, likeliest first; of equal ones the lower id first."""
        return np.argsort(-self.plain, kind="stable")[:n]

    def rank(self, token_id: int) -> int:
        """1 for the likeliest token; the number of likelier tokens plus 1."""
        return int((self.plain > self.plain[token_id]).sum()) + 1

    @property
    def entropy(self) -> float:
        """-Σ p log₂ p of `sampled`, bits."""
        p = self.sampled[self.sampled > 0]
        return float(max(0.0, -(p * np.log2(p)).sum()))


def next_token(trace: Trace, position: int, temperature: float = 1.0, top_k: int | None = None) -> NextToken:
    """The distribution after `position`; ValueError where `sampling_distribution` raises it."""
    logits = trace["logits"][position]  # (V,)
    following = position + 1
    return NextToken(
        plain=sampling_distribution(logits),
        sampled=sampling_distribution(logits, temperature, top_k),
        actual=trace.token_ids[following] if following < len(trace) else None,
    )


def ranking(trace: Trace, position: int) -> np.ndarray:
    """All token ids (V,) by how likely they are after `position`: that of rank r is at r - 1; of equal ones the lower
    id comes first."""
    return np.argsort(-trace["logits"][position], kind="stable")


def surprisal(trace: Trace) -> np.ndarray:
    """(T,) bits, -log₂ of the probability the model gave each token; NaN for the first, which nothing precedes."""
    logits = trace["logits"][:-1]  # (T - 1, V)
    largest = logits.max(-1)
    log_total = largest + np.log(np.exp(logits - largest[:, None]).sum(-1))
    actual = logits[np.arange(len(logits)), trace.token_ids[1:]]
    return np.concatenate([[np.nan], (log_total - actual) / np.log(2)])


def entropy(trace: Trace) -> np.ndarray:
    """(T,) bits, the surprisal to be expected of each token before it was seen; NaN for the first."""
    logits = trace["logits"][:-1]  # (T - 1, V)
    shifted = logits - logits.max(-1, keepdims=True)
    weights = np.exp(shifted)
    total = weights.sum(-1)
    bits = (np.log(total) - np.einsum("tv,tv->t", weights, shifted) / total) / np.log(2)
    return np.concatenate([[np.nan], bits.clip(0)])


def rank(trace: Trace) -> np.ndarray:
    """(T,), each token's place among all tokens by how likely they were: 1 is the likeliest; NaN for the first."""
    logits = trace["logits"][:-1]  # (T - 1, V)
    actual = logits[np.arange(len(logits)), trace.token_ids[1:]]
    return np.concatenate([[np.nan], (logits > actual[:, None]).sum(-1) + 1])
