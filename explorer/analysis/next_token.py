"""The model's predictions of what comes next."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.largest import largest_first
from explorer.tracing.trace import Trace
from model.generation.sampling import SamplingStages, draw, luck, sampling_distribution, sampling_stages


@dataclass(frozen=True)
class NextToken:
    """The distribution of the token after one position.

    Attributes:
        plain: softmax of the logits (V,), before any setting.
        sampled: what a token is drawn from (V,), after all settings.
        actual: the token that does come next in the run, None at its end.
        stages: how the settings make `sampled` of the logits.
        u: the random number in [0, 1) that draws the next token, None without a seed.
    """

    plain: np.ndarray
    sampled: np.ndarray
    actual: int | None
    stages: SamplingStages | None = None
    u: float | None = None

    @property
    def drawn(self) -> int | None:
        """The token that u draws, None without a seed."""
        return None if self.u is None else draw(self.sampled, self.u)

    def top(self, n: int) -> np.ndarray:
        """Ids of the n likeliest tokens, likeliest first; of equal ones the lower id first."""
        return largest_first(self.plain, n)

    def rank(self, token_id: int) -> int:
        """1 for the likeliest token; the number of likelier tokens plus 1."""
        return int((self.plain > self.plain[token_id]).sum()) + 1

    @property
    def entropy(self) -> float:
        """-Σ p log₂ p of `sampled`, bits."""
        return _entropy(self.sampled)

    @property
    def plain_entropy(self) -> float:
        """The same of `plain`: that of the model before any setting."""
        return _entropy(self.plain)


def _entropy(probabilities: np.ndarray) -> float:
    p = probabilities[probabilities > 0]
    return float(max(0.0, -(p * np.log2(p)).sum()))


def next_token(
    trace: Trace,
    position: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    *,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    seed: int | None = None,
    start: int = 0,
) -> NextToken:
    """The distribution after `position`, and what `model.generate` draws from it with these settings.

    Args:
        temperature, top_k, top_p, min_p, repetition_penalty: see `sampling_stages`; the penalty falls on the tokens up
            to `position`.
        seed: of the random numbers, None if nothing is drawn.
        start: how many tokens of the text come before the trace's first one.

    Raises:
        ValueError: a setting is out of its range.
    """
    logits = trace.logits.at(position)  # (V,)
    following = position + 1
    limits = {"top_p": top_p, "min_p": min_p, "repetition_penalty": repetition_penalty}
    stages = sampling_stages(logits, temperature, top_k, **limits, previous=trace.token_ids[:following])
    return NextToken(
        plain=sampling_distribution(logits),
        sampled=stages.probabilities,
        actual=trace.token_ids[following] if following < len(trace) else None,
        stages=stages,
        u=None if seed is None else luck(seed, start + following),
    )


def ranking(trace: Trace, position: int) -> np.ndarray:
    """All token ids (V,) by how likely they are after `position`: that of rank r is at r - 1; of equal ones the lower
    id comes first. Of a changed run as they are without its changes, so that a chosen rank goes on naming the same
    token while those move."""
    return likeliest(trace.baseline or trace, position)


def likeliest(trace: Trace, position: int) -> np.ndarray:
    """The same of the run itself, changed or not."""
    return trace.logits.top(trace.config.vocab_size, position)


def rank_of(trace: Trace, position: int, token_id: int) -> int:
    """A token's rank in the run itself, from 1."""
    return trace.logits.rank(token_id, position)


def surprisal(trace: Trace) -> np.ndarray:
    """(T,) bits, -log₂ of the probability the model gave each token; NaN for the first, which nothing precedes."""
    return np.concatenate([[np.nan], (trace.logits.log_sum_exp[:-1] - trace.logits.summary.next_logit) / np.log(2)])


def entropy(trace: Trace) -> np.ndarray:
    """(T,) bits, the surprisal to be expected of each token before it was seen; NaN for the first."""
    return np.concatenate([[np.nan], trace.logits.entropy[:-1]])


def rank(trace: Trace) -> np.ndarray:
    """(T,), each token's place among all tokens by how likely they were: 1 is the likeliest; NaN for the first."""
    return np.concatenate([[np.nan], trace.logits.summary.next_rank])
