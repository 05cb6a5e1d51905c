"""Next-token distributions, ranks, surprisal and entropy."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.top_indices import top_indices
from explorer.tracing.trace import Trace
from model.generation.sampling import SamplingStages, draw_token, sampling_distribution, sampling_stages, uniform_draw


@dataclass(frozen=True)
class NextTokenDistribution:
    """The distribution of the token after one position.

    Attributes:
        plain: softmax of the logits (V,), before any setting.
        sampled: the distribution that tokens are sampled from (V,), after all settings.
        actual: the actual next token of the run, None at its end.
        stages: the stages from the logits to `sampled`.
        u: the random number in [0, 1) that draws the next token, None without a seed.
    """

    plain: np.ndarray
    sampled: np.ndarray
    actual: int | None
    stages: SamplingStages | None = None
    u: float | None = None

    @property
    def sampled_token_id(self) -> int | None:
        """The token that `u` samples, None without a seed."""
        return None if self.u is None else draw_token(self.sampled, self.u)

    def top(self, n: int) -> np.ndarray:
        """Return the ids of the n most probable tokens, most probable first; ties by lower id."""
        return top_indices(self.plain, n)

    def rank(self, token_id: int) -> int:
        """Return the rank of a token: 1 + the number of more probable tokens."""
        return int((self.plain > self.plain[token_id]).sum()) + 1

    @property
    def entropy(self) -> float:
        """Entropy −Σ p log₂ p of `sampled`, in bits."""
        return _entropy(self.sampled)

    @property
    def plain_entropy(self) -> float:
        """Entropy of `plain`, the distribution before any setting, in bits."""
        return _entropy(self.plain)


def _entropy(probabilities: np.ndarray) -> float:
    p = probabilities[probabilities > 0]
    return float(max(0.0, -(p * np.log2(p)).sum()))


def next_token_distribution(
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
) -> NextTokenDistribution:
    """Return the distribution after `position`, and the token that `model.generate` samples with these settings.

    Args:
        temperature, top_k, top_p, min_p, repetition_penalty: see `sampling_stages`; the penalty falls on the
            tokens up to `position`.
        seed: of the random numbers, None if nothing is drawn.
        start: how many tokens of the text come before the trace's first one.

    Raises:
        ValueError: a setting is out of its range.
    """
    logits = trace.logits.row(position)  # (V,)
    following = position + 1
    limits = {"top_p": top_p, "min_p": min_p, "repetition_penalty": repetition_penalty}
    stages = sampling_stages(logits, temperature, top_k, **limits, previous=trace.token_ids[:following])
    return NextTokenDistribution(
        plain=sampling_distribution(logits),
        sampled=stages.probabilities,
        actual=trace.token_ids[following] if following < len(trace) else None,
        stages=stages,
        u=None if seed is None else uniform_draw(seed, start + following),
    )


def ranking_without_interventions(trace: Trace, position: int) -> np.ndarray:
    """Return all token ids by decreasing probability after `position` without interventions, (V,); ties by lower id.

    For a run with interventions this is the ranking without them, so that a rank keeps naming the same token.
    """
    return next_token_ranking(trace.baseline or trace, position)


def next_token_ranking(trace: Trace, position: int) -> np.ndarray:
    """Return all token ids by decreasing probability in the run itself, with its interventions, (V,)."""
    return trace.logits.top(trace.config.vocab_size, position)


def token_rank(trace: Trace, position: int, token_id: int) -> int:
    """Return a token's rank in the run itself, from 1."""
    return trace.logits.rank(token_id, position)


def surprisal(trace: Trace) -> np.ndarray:
    """Return the surprisal −log₂ p of each token in bits, (T,); NaN for the first."""
    return np.concatenate([[np.nan], (trace.logits.log_sum_exp[:-1] - trace.logits.summary.next_logit) / np.log(2)])


def entropy(trace: Trace) -> np.ndarray:
    """Return the entropy of the prediction of each token in bits, (T,); NaN for the first."""
    return np.concatenate([[np.nan], trace.logits.entropy[:-1]])


def actual_token_ranks(trace: Trace) -> np.ndarray:
    """Return the rank of each actual token in its prediction, (T,): 1 is the most probable; NaN for the first."""
    return np.concatenate([[np.nan], trace.logits.summary.next_rank])
