"""Single tokens from logit to probability, and their intervals in inverse transform sampling."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from model.generation.sampling import SamplingStages, sampling_distribution


@dataclass(frozen=True)
class SamplingRow:
    """One token's values at the sampling stages.

    Attributes:
        token_id: the token.
        rank: rank by penalised logit, as used by top-k: 1 has the largest; ties
            by lower id.
        logit, penalised, scaled, probability, cumulative: see `SamplingStages`.
        plain: softmax of the logits, the model's own probability.
        weight: e^(scaled − the largest scaled), probability relative to the most probable token, as used by min-p.
        ahead: cumulative probability of better ranked tokens among those within top-k, as used by top-p.
        cut_by: the limit that excludes it: "top_k", "top_p" or "min_p"; None if it is included.
    """

    token_id: int
    rank: int
    logit: float
    penalised: float
    scaled: float
    plain: float
    weight: float
    ahead: float
    cut_by: str | None
    probability: float
    cumulative: float


@dataclass(frozen=True)
class ProbabilityInterval:
    """The interval [start, end) of [0, 1) in which a uniform random number samples the token."""

    token_id: int
    start: float
    end: float


class SamplingTable:
    """Rows of the sampling table of one position.

    Args:
        stages: sampling stages of the position.

    Attributes:
        ranking: all token ids (V,), that of rank r at r − 1.
        largest: the largest scaled logit.
        total: Σ e^(scaled − largest) over the tokens that are not excluded.
    """

    def __init__(self, stages: SamplingStages):
        self.stages = stages
        self.ranking = np.argsort(-stages.penalised, kind="stable")
        self.largest = float(stages.scaled_logits.max())
        self.total = 1 / float(stages.probabilities.max())  # the likeliest token is never cut and has weight 1
        self._place = np.empty_like(self.ranking)
        self._place[self.ranking] = np.arange(len(self.ranking))
        self._plain = sampling_distribution(stages.logits)
        self._weight = np.exp(stages.scaled_logits - self.largest)
        in_top_k = (self._weight * stages.in_top_k)[self.ranking]
        self._ahead = (np.cumsum(in_top_k) - in_top_k) / in_top_k.sum()  # by rank

    def row(self, token_id: int) -> SamplingRow:
        """Return a token's numbers at every stage of sampling."""
        stages, index = self.stages, int(self._place[token_id])
        limits = {"top_k": stages.in_top_k, "top_p": stages.in_top_p, "min_p": stages.in_min_p}
        return SamplingRow(
            token_id=int(token_id),
            rank=index + 1,
            logit=float(stages.logits[token_id]),
            penalised=float(stages.penalised[token_id]),
            scaled=float(stages.scaled_logits[token_id]),
            plain=float(self._plain[token_id]),
            weight=float(self._weight[token_id]),
            ahead=float(self._ahead[index]),
            cut_by=next((name for name, mask in limits.items() if not mask[token_id]), None),
            probability=float(stages.probabilities[token_id]),
            cumulative=float(stages.cumulative[token_id]),
        )

    def rows(self, max_count: int, always: Collection[int] = (), extra: Collection[int] = ()) -> list[SamplingRow]:
        """Return `max_count` rows by rank, those of `always` and else the best, and in addition those of `extra`."""
        best = [i for i in self.ranking[:max_count].tolist() if i not in always]
        token_ids = {*always, *best[: max(0, max_count - len(set(always)))], *extra}
        return sorted(map(self.row, token_ids), key=lambda row: row.rank)

    def intervals(self, narrowest: float, always: Collection[int] = ()) -> list[ProbabilityInterval]:
        """Return the intervals at least `narrowest` wide and those of `always`, in the order of `draw`.

        Excluded tokens have none.
        """
        probabilities = self.stages.probabilities
        wide = np.flatnonzero(probabilities >= narrowest).tolist()
        token_ids = {*wide, *(i for i in always if probabilities[i] > 0)}
        interval_ends = {int(i): float(self.stages.cumulative[i]) for i in token_ids}
        intervals = [
            ProbabilityInterval(i, max(0.0, end - float(probabilities[i])), end) for i, end in interval_ends.items()
        ]
        return sorted(intervals, key=lambda stretch: stretch.start)


def find_tokens(vocabulary: Sequence[str], search_text: str, ranking: Sequence[int], max_count: int) -> list[int]:
    """Return the ids of tokens that match a search text.

    Args:
        vocabulary: text of every token id.
        search_text: part of a token's text, case-insensitive, with · for a space; or a token's id. "" matches
            nothing.
        ranking: all ids; equally good matches are sorted by it.
        max_count: maximum number of results.

    Returns:
        first the token with that id, then exact matches up to surrounding spaces, then tokens that contain the
            text.
    """
    text = search_text.replace("·", " ").casefold()
    if not text:
        return []
    by_id = [int(text)] if text.isascii() and text.isdigit() and len(text) <= 9 and int(text) < len(vocabulary) else []
    containing = [int(i) for i in ranking if text in vocabulary[i].casefold() and int(i) not in by_id]
    containing.sort(key=lambda i: vocabulary[i].casefold().strip() != text.strip())
    return [*by_id, *containing][:max_count]
