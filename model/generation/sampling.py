"""Sampling, from logits to a token: pure functions on NumPy arrays, shared by the generator and the figures."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np


@dataclass(frozen=True, eq=False)
class SamplingStages:
    """Result of each stage from logits to probabilities, for V tokens, of which the last stage retains n.

    Values that only a figure needs are computed on first use.

    Attributes:
        logits: (V,) of the model.
        penalised: (V,) after the repetition penalty.
        temperature: divisor of the penalised logits.
        retained: indices of the tokens that remain after top-k; after top-p as well; after min-p as well.
        retained_probabilities: (n,) of the tokens that remain after all three.
    """

    logits: np.ndarray
    penalised: np.ndarray
    temperature: float
    retained: tuple[np.ndarray | slice, np.ndarray | slice, np.ndarray | slice]
    retained_probabilities: np.ndarray

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Distribution (V,) of the next token: softmax of `scaled_logits` over the tokens that remain, else 0."""
        probabilities = np.zeros(len(self.logits))
        probabilities[self.retained[2]] = self.retained_probabilities
        return probabilities

    def draw(self, u: float) -> tuple[int, float]:
        """Return `draw(probabilities, u)` and that token's probability, reading only the tokens that remain."""
        index = draw_token(self.retained_probabilities, u)
        ids = self.retained[2]
        return index if isinstance(ids, slice) else int(ids[index]), float(self.retained_probabilities[index])

    @cached_property
    def scaled_logits(self) -> np.ndarray:
        """Penalised logits divided by the temperature; unchanged at temperature 0."""
        return self.penalised / np.float64(self.temperature or 1.0)

    @cached_property
    def in_top_k(self) -> np.ndarray:
        """Boolean mask (V,) of the tokens that top-k keeps."""
        return self._mask(0)

    @cached_property
    def in_top_p(self) -> np.ndarray:
        """Boolean mask (V,) of the tokens that top-k and top-p keep."""
        return self._mask(1)

    @cached_property
    def in_min_p(self) -> np.ndarray:
        """Boolean mask (V,) of the tokens that top-k, top-p and min-p keep, the ones that can be drawn."""
        return self._mask(2)

    def _mask(self, stage: int) -> np.ndarray:
        mask = np.zeros(len(self.logits), dtype=bool)
        mask[self.retained[stage]] = True
        return mask

    @cached_property
    def order(self) -> np.ndarray:
        """Token ids (V,) in the order of `draw`: the likeliest first, of equal ones the lower id."""
        return np.argsort(-self.probabilities, kind="stable")

    @cached_property
    def cumulative(self) -> np.ndarray:
        """Cumulative probability (V,) of each token and all before it in `order`.

        Each token's interval of [0, 1] ends there and begins where the interval of the token before it ends.
        """
        cumulative = np.empty_like(self.probabilities)
        cumulative[self.order] = np.cumsum(self.probabilities[self.order])
        return cumulative


def sampling_stages(
    logits: np.ndarray,
    temperature: float = 1.0,
    top_k: int | None = None,
    *,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    previous: Sequence[int] = (),
) -> SamplingStages:
    """Return the distribution that the settings make of logits, stage by stage, in transformers' order.

    Args:
        logits: (V,).
        temperature: logits are divided by it; 0 leaves only the largest (argmax).
        top_k: keep the k largest, exactly k: of equal ones the lower ids. None or 0 keeps all.
        top_p: of those keep the fewest, the likeliest first, whose probabilities sum to this (nucleus; Holtzman et
            al. 2020). None or 1 keeps all.
        min_p: of those keep the ones at least this many times as likely as the likeliest (Nguyen et al. 2024).
            None or 0 keeps all.
        repetition_penalty: logits of tokens in `previous` are divided by it where positive, multiplied where
            negative (Keskar et al. 2019, for negative ones as transformers does). 1 leaves them.
        previous: token ids, each counted once however often it occurs.

    Raises:
        ValueError: a setting is out of its range.
    """
    check_sampling_settings(temperature, top_k, top_p, min_p, repetition_penalty)
    logits = np.asarray(logits)
    penalised = apply_repetition_penalty(logits, previous, repetition_penalty) if repetition_penalty != 1 else logits
    k = 1 if temperature == 0 else top_k or len(logits)
    in_top_k = in_top_p = in_min_p = top_k_indices(penalised, k) if k < len(logits) else slice(None)
    scores = penalised[in_top_k].astype(np.float64)
    # The difference is divided, not the logits: those may overflow.
    weights = np.exp((scores - scores.max()) / (temperature or 1.0))  # (n,) of the tokens that remain
    if top_p is not None and top_p < 1:
        nucleus = top_p_indices(weights / weights.sum(), top_p)
        in_top_p = in_min_p = np.arange(len(logits))[in_top_k][nucleus]
        weights = weights[nucleus]
    if min_p:
        likely = np.flatnonzero(weights >= min_p)  # the weight of the likeliest, which is never cut, is 1
        in_min_p = np.arange(len(logits))[in_top_p][likely]
        weights = weights[likely]
    return SamplingStages(logits, penalised, temperature, (in_top_k, in_top_p, in_min_p), weights / weights.sum())


def sampling_distribution(
    logits: np.ndarray, temperature: float = 1.0, top_k: int | None = None, **settings
) -> np.ndarray:
    """Return probabilities (V,) of the next token; the arguments are those of `sampling_stages`."""
    return sampling_stages(logits, temperature, top_k, **settings).probabilities


def check_sampling_settings(
    temperature: float, top_k: int | None, top_p: float | None, min_p: float | None, repetition_penalty: float
) -> None:
    """Check that every setting is in its range.

    Raises:
        ValueError: a setting is not.
    """
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature must be 0 or more, got {temperature}")
    if top_k is not None and top_k < 0:
        raise ValueError(f"top_k must be 0 (keep all) or more, got {top_k}")
    for name, value in (("top_p", top_p), ("min_p", min_p)):
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"{name} must be 0 to 1, got {value}")
    if not 0 < repetition_penalty < float("inf"):
        raise ValueError(f"repetition_penalty must be positive (1 leaves all as it is), got {repetition_penalty}")


def apply_repetition_penalty(logits: np.ndarray, token_ids: Sequence[int], penalty: float) -> np.ndarray:
    """Return logits (V,) with those of `token_ids` divided by the penalty if positive, multiplied if negative."""
    penalised = logits.astype(np.float64)
    ids = np.unique(np.asarray(token_ids, dtype=np.intp))
    penalised[ids] *= np.where(logits[ids] > 0, 1 / penalty, penalty)
    return penalised


def top_k_indices(values: np.ndarray, k: int) -> np.ndarray:
    """Return the indices (k,) of the k largest of `values` (N,), k ≤ N, ascending; of equal values the first."""
    # Each of k stretches' largest values is no less than the smallest of them: the k-th largest of all is no less, too.
    lower_bound = values[: len(values) // k * k].reshape(k, -1).max(axis=1).min()
    indices = np.flatnonzero(values >= lower_bound)
    candidates = values[indices]
    threshold = np.partition(candidates, -k)[-k]
    indices = indices[candidates >= threshold]
    if surplus := len(indices) - k:
        indices = np.delete(indices, np.flatnonzero(values[indices] == threshold)[-surplus:])
    return indices


def top_p_indices(probabilities: np.ndarray, mass: float) -> np.ndarray:
    """Return the indices of the fewest `probabilities` (N,), the largest first, that sum to `mass` or more."""
    _, index = nucleus_boundary(probabilities, mass, side="left")
    return top_k_indices(probabilities, index + 1)


def nucleus_boundary(probabilities: np.ndarray, mass: float, side: Literal["left", "right"]) -> tuple[np.ndarray, int]:
    """Return the largest `probabilities` (N,), sorted, and the index at which their sum reaches or passes `mass`.

    `side` "left" means reaches, "right" passes.

    Returns:
        probabilities in descending order, the first n of them; the index of that one among them.
    """
    # What is left then, 1 - mass or more, are N shares at most, and that one is the largest of them: it is no less than
    # their mean, and smaller ones need not be sorted. The + 1 is for rounding.
    descending = np.sort(probabilities[probabilities >= (1 - mass) / (len(probabilities) + 1)])[::-1]
    return descending, min(int(np.searchsorted(np.cumsum(descending), mass, side)), len(descending) - 1)


def uniform_draw(seed: int, position: int) -> float:
    """Return the uniform random number in [0, 1) that draws the token at a position.

    It depends on nothing else, so that generating step by step draws the same tokens as generating in one go. It
    is a hash of seed and position; setting up a random generator at every step would take ten times as long.
    """
    digest = hashlib.sha256(f"{seed} {position}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53  # as many bits as a float64 holds


def draw_token(probabilities: np.ndarray, u: float) -> int:
    """Return the token whose interval of the cumulative distribution contains u; the likeliest has the first.

    Of equally likely tokens the lower id comes first.

    Args:
        probabilities: (V,), summing to 1.
        u: in [0, 1); uniform u draws each token with its probability.
    """
    descending, rank = nucleus_boundary(probabilities, u, side="right")
    ties = np.flatnonzero(probabilities == descending[rank])
    return int(ties[rank - np.count_nonzero(descending > descending[rank])])
