"""Single tokens on their way from logit to probability, and their stretches of the random number's line."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from model.generation.sampling import SamplingStages, sampling_distribution


@dataclass(frozen=True)
class Row:
    """What the stages make of one token.

    Attributes:
        token_id: the token.
        rank: its place among all tokens by penalised logit, by which top-k counts: 1 has the largest; of equal ones
            the lower id comes first.
        logit, penalised, scaled, probability, cumulative: see `SamplingStages`.
        plain: softmax of the logits, the model's own probability.
        weight: e^(scaled − the largest scaled), how many times as likely as the likeliest token; min-p asks for it.
        ahead: of the probability of all that top-k keeps, the part that better ranked tokens have; top-p asks for it.
        cut_by: the limit that cuts it: "top_k", "top_p" or "min_p"; None where it is kept.
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
class Stretch:
    """The part [start, end) of [0, 1) in which a random number draws the token."""

    token_id: int
    start: float
    end: float


class SamplingTable:
    """Rows of the tokens that are asked for.

    Args:
        stages: of the tokens of one position.

    Attributes:
        ranking: all token ids (V,), that of rank r at r − 1.
        largest: the largest scaled logit.
        total: Σ e^(scaled − largest) over the tokens kept.
    """

    def __init__(self, stages: SamplingStages):
        self.stages = stages
        self.ranking = np.argsort(-stages.penalised, kind="stable")
        self.largest = float(stages.scaled.max())
        self.total = 1 / float(stages.probabilities.max())  # the likeliest token is never cut and has weight 1
        self._place = np.empty_like(self.ranking)
        self._place[self.ranking] = np.arange(len(self.ranking))
        self._plain = sampling_distribution(stages.logits)
        self._weight = np.exp(stages.scaled - self.largest)
        in_top_k = (self._weight * stages.in_top_k)[self.ranking]
        self._ahead = (np.cumsum(in_top_k) - in_top_k) / in_top_k.sum()  # by rank

    def row(self, token_id: int) -> Row:
        stages, place = self.stages, int(self._place[token_id])
        limits = {"top_k": stages.in_top_k, "top_p": stages.in_top_p, "min_p": stages.in_min_p}
        return Row(
            token_id=int(token_id),
            rank=place + 1,
            logit=float(stages.logits[token_id]),
            penalised=float(stages.penalised[token_id]),
            scaled=float(stages.scaled[token_id]),
            plain=float(self._plain[token_id]),
            weight=float(self._weight[token_id]),
            ahead=float(self._ahead[place]),
            cut_by=next((name for name, kept in limits.items() if not kept[token_id]), None),
            probability=float(stages.probabilities[token_id]),
            cumulative=float(stages.cumulative[token_id]),
        )

    def rows(self, most: int, always: Collection[int] = (), besides: Collection[int] = ()) -> list[Row]:
        """Rows in the order of their ranks: `most` of them, those of `always` and else the best, and then `besides`."""
        best = [i for i in self.ranking[:most].tolist() if i not in always]
        chosen = {*always, *best[: max(0, most - len(set(always)))], *besides}
        return sorted(map(self.row, chosen), key=lambda row: row.rank)

    def stretches(self, narrowest: float, always: Collection[int] = ()) -> list[Stretch]:
        """The stretches that are no narrower, and those of `always`, in the order of `draw`; tokens cut have none."""
        probabilities = self.stages.probabilities
        wide = np.flatnonzero(probabilities >= narrowest).tolist()
        chosen = {*wide, *(i for i in always if probabilities[i] > 0)}
        ends = {int(i): float(self.stages.cumulative[i]) for i in chosen}
        found = [Stretch(i, max(0.0, end - float(probabilities[i])), end) for i, end in ends.items()]
        return sorted(found, key=lambda stretch: stretch.start)


def matching(vocabulary: Sequence[str], wanted: str, ranking: Sequence[int], most: int) -> list[int]:
    """Ids of tokens that somebody looks for.

    Args:
        vocabulary: the text of every token id.
        wanted: a part of a token's text, capital or not, with · for a space; or a token's id. "" is no token's.
        ranking: all ids; of those that match equally well the earlier come first.
        most: how many at most.

    Returns:
        first the token with that id, then those that are just this text but for spaces around it, then those that
        contain it.
    """
    text = wanted.replace("·", " ").casefold()
    if not text:
        return []
    by_id = [int(text)] if text.isascii() and text.isdigit() and len(text) <= 9 and int(text) < len(vocabulary) else []
    containing = [int(i) for i in ranking if text in vocabulary[i].casefold() and int(i) not in by_id]
    containing.sort(key=lambda i: vocabulary[i].casefold().strip() != text.strip())
    return [*by_id, *containing][:most]
