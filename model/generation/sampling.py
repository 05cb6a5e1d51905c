"""From logits to a token: pure functions on numpy arrays, used by the generator and by the picture of it alike."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np


@dataclass(frozen=True, eq=False)
class SamplingStages:
    """What every step of the way from logits to probabilities leaves, for V tokens, of which n are kept in the end.

    What only a picture needs is computed when it is asked for.

    Attributes:
        logits: (V,) as the model gave them.
        penalised: (V,) after the repetition penalty.
        temperature: what they are divided by.
        kept: what indexes the tokens kept by top-k; by top-k and top-p; by top-k, top-p and min-p.
        shares: (n,) the probabilities of the tokens kept in the end.
    """

    logits: np.ndarray
    penalised: np.ndarray
    temperature: float
    kept: tuple[np.ndarray | slice, np.ndarray | slice, np.ndarray | slice]
    shares: np.ndarray

    @cached_property
    def probabilities(self) -> np.ndarray:
        """(V,), what the next token is drawn from: softmax of `scaled` over the tokens kept in the end."""
        probabilities = np.zeros(len(self.logits))
        probabilities[self.kept[2]] = self.shares
        return probabilities

    def draw(self, u: float) -> tuple[int, float]:
        """`draw(probabilities, u)` and that token's probability, by a look at the tokens alone that are kept."""
        place = draw(self.shares, u)
        ids = self.kept[2]
        return place if isinstance(ids, slice) else int(ids[place]), float(self.shares[place])

    @cached_property
    def scaled(self) -> np.ndarray:
        """The penalised logits divided by the temperature; at temperature 0 as they were."""
        return self.penalised / np.float64(self.temperature or 1.0)

    @cached_property
    def in_top_k(self) -> np.ndarray:
        """Booleans: the tokens kept by top-k."""
        return self._mask(0)

    @cached_property
    def in_top_p(self) -> np.ndarray:
        """Booleans: of those the ones kept by top-p."""
        return self._mask(1)

    @cached_property
    def in_min_p(self) -> np.ndarray:
        """Booleans: of those the ones kept by min-p, which are those that can be drawn."""
        return self._mask(2)

    def _mask(self, limit: int) -> np.ndarray:
        mask = np.zeros(len(self.logits), dtype=bool)
        mask[self.kept[limit]] = True
        return mask

    @cached_property
    def order(self) -> np.ndarray:
        """All token ids (V,) in the order of `draw`: the likeliest first, of equal ones the lower id."""
        return np.argsort(-self.probabilities, kind="stable")

    @cached_property
    def cumulative(self) -> np.ndarray:
        """(V,), for each token the probability of it and all before it in `order`: where its stretch of [0, 1] ends.
        It begins where that of the token before ends."""
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
    """How the settings make a distribution out of logits, in the order in which transformers applies them.

    Args:
        logits: (V,).
        temperature: logits are divided by it; 0 leaves only the largest (argmax).
        top_k: keep the k largest, exactly k: of equal ones the lower ids. None or 0 keeps all.
        top_p: of those keep the fewest that have this probability together, the likeliest (nucleus; Holtzman et al.
            2020). None or 1 keeps all.
        min_p: of those keep the ones at least this many times as likely as the likeliest (Nguyen et al. 2024). None or
            0 keeps all.
        repetition_penalty: logits of tokens in `previous` are divided by it where positive, multiplied where negative
            (Keskar et al. 2019, for negative ones as transformers does). 1 leaves them.
        previous: token ids, each counted once however often it occurs.

    Raises:
        ValueError: a setting is out of its range.
    """
    check(temperature, top_k, top_p, min_p, repetition_penalty)
    logits = np.asarray(logits)
    penalised = penalise(logits, previous, repetition_penalty) if repetition_penalty != 1 else logits
    k = 1 if temperature == 0 else top_k or len(logits)
    in_top_k = in_top_p = in_min_p = largest(penalised, k) if k < len(logits) else slice(None)
    scores = penalised[in_top_k].astype(np.float64)
    # The difference is divided, not the logits: those may overflow.
    weights = np.exp((scores - scores.max()) / (temperature or 1.0))  # (n,) of the tokens still kept
    if top_p is not None and top_p < 1:
        nucleus = largest_with(weights / weights.sum(), top_p)
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
    """Probabilities (V,) the next token is drawn from; the arguments are those of `sampling_stages`."""
    return sampling_stages(logits, temperature, top_k, **settings).probabilities


def check(
    temperature: float, top_k: int | None, top_p: float | None, min_p: float | None, repetition_penalty: float
) -> None:
    """ValueError where a setting is out of its range."""
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature must be 0 or more, got {temperature}")
    if top_k is not None and top_k < 0:
        raise ValueError(f"top_k must be 0 (keep all) or more, got {top_k}")
    for name, value in (("top_p", top_p), ("min_p", min_p)):
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"{name} must be 0 to 1, got {value}")
    if not 0 < repetition_penalty < float("inf"):
        raise ValueError(f"repetition_penalty must be positive (1 leaves all as it is), got {repetition_penalty}")


def penalise(logits: np.ndarray, token_ids: Sequence[int], penalty: float) -> np.ndarray:
    """Logits (V,) in which those of `token_ids` are less by the factor: divided if positive, multiplied if negative."""
    penalised = logits.astype(np.float64)
    ids = np.unique(np.asarray(token_ids, dtype=np.intp))
    penalised[ids] *= np.where(logits[ids] > 0, 1 / penalty, penalty)
    return penalised


def largest(values: np.ndarray, k: int) -> np.ndarray:
    """Indices (k,) of the k largest of `values` (N,), k ≤ N, in order of index; of equal values the first are taken."""
    # Each of k stretches' largest values is no less than the smallest of them: the k-th largest of all is no less, too.
    least = values[: len(values) // k * k].reshape(k, -1).max(axis=1).min()
    chosen = np.flatnonzero(values >= least)
    near = values[chosen]
    threshold = np.partition(near, -k)[-k]
    chosen = chosen[near >= threshold]
    if surplus := len(chosen) - k:
        chosen = np.delete(chosen, np.flatnonzero(values[chosen] == threshold)[-surplus:])
    return chosen


def largest_with(shares: np.ndarray, mass: float) -> np.ndarray:
    """Indices of the fewest `shares` (N,) that sum to `mass` or more, the largest; of equal ones the first."""
    _, place = descend(shares, mass, side="left")
    return largest(shares, place + 1)


def descend(shares: np.ndarray, mass: float, side: Literal["left", "right"]) -> tuple[np.ndarray, int]:
    """From the largest of `shares` (N,) down to the one with which their sum reaches `mass` ("left") or passes it.

    Returns:
        shares in descending order, the first n of them; the place of that one among them.
    """
    # What is left then, 1 - mass or more, are N shares at most, and that one is the largest of them: it is no less than
    # their mean, and smaller ones need not be sorted. The + 1 is for rounding.
    descending = np.sort(shares[shares >= (1 - mass) / (len(shares) + 1)])[::-1]
    return descending, min(int(np.searchsorted(np.cumsum(descending), mass, side)), len(descending) - 1)


def luck(seed: int, position: int) -> float:
    """The uniform random number in [0, 1) that draws the token at a position.

    It depends on nothing else, so that writing on step by step draws the same tokens as writing in one go. A hash
    mixes the two; to set up a random generator anew at every step would take ten times as long.
    """
    digest = hashlib.sha256(f"{seed} {position}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53  # as many bits as a float64 holds


def draw(probabilities: np.ndarray, u: float) -> int:
    """The token whose stretch of the cumulative probability holds u, the likeliest token having the first stretch.

    Of equally likely tokens the lower id comes first.

    Args:
        probabilities: (V,), summing to 1.
        u: in [0, 1); uniform u draws each token with its probability.
    """
    descending, place = descend(probabilities, u, side="right")
    equal = np.flatnonzero(probabilities == descending[place])
    return int(equal[place - np.count_nonzero(descending > descending[place])])
