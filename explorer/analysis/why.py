"""Why a token was predicted: which parts raise its logit, what becomes of it without them, and what they read."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from explorer.analysis.ablation import ablation
from explorer.analysis.attribution import Attribution, attribution
from explorer.analysis.next_token import ranking
from explorer.state.interventions import Edit, Intervention
from explorer.tracing.trace import Trace
from model.config import ModelConfig

MOST_PARTS = 3  # of those that raise the logit most
LEAST_SHARE = 0.1  # of all that raises it, of a part that is named
DECISIVE = 0.5  # bits: a part costs so many where the probability falls to 71 %


@dataclass(frozen=True)
class Part:
    """An attention head, or the feed-forward of a layer.

    Attributes:
        head: None for the feed-forward.
    """

    layer: int
    head: int | None = None

    @property
    def silenced(self) -> Intervention:
        if self.head is None:
            return Edit(f"blocks.{self.layer}.ffn.hidden", "zero")
        return Edit(f"blocks.{self.layer}.attn.z", "zero", index=self.head)


@dataclass(frozen=True)
class Reason:
    """What a part does for the token.

    Attributes:
        adds: to the logit of the token less that of its rival (direct logit attribution).
        costs: bits of log₂ p that the token loses where the part alone is silent; below 0 it wins them.
        key: position at which the head looks most; None for a feed-forward.
        weight: of its attention there.
    """

    part: Part
    adds: float
    costs: float
    key: int | None = None
    weight: float = 0.0


@dataclass(frozen=True)
class Why:
    """Why a token, and not another, comes after a position.

    Attributes:
        token_id, rival_id: the token, and the likeliest other one.
        log2_p: log₂ of the token's probability.
        lead: its logit less the rival's; below 0 the rival is the likelier.
        reasons: the parts that raise the lead most, at most `MOST_PARTS` and none that adds less than `LEAST_SHARE` of
            what all that raise it add.
        dearest: the part whose silence costs most, and how many bits.
        partner: the part that costs most besides what it costs alone once the first of the reasons is silent, and how
            many bits both cost together; None where there is no reason, or none that costs `DECISIVE` more so.
        together: bits that all reasons cost together; None where that is not `DECISIVE` more than they cost one by one.
    """

    token_id: int
    rival_id: int
    log2_p: float
    lead: float
    reasons: tuple[Reason, ...]
    dearest: tuple[Part, float]
    partner: tuple[Reason, float] | None
    together: float | None = None


def why(trace: Trace, position: int, target: int = 1) -> Why:
    """Of the token of a rank after a position. The first time this runs the model twice for every part.

    Raises:
        ValueError: the trace knows no model to run again.
    """
    order = ranking(trace, position)
    token_id, rival_id = int(order[target - 1]), int(order[0 if target > 1 else 1])
    added = attribution(trace, position, token_id, rival_id)
    raised = raises(added)
    alone = ablation(trace, position, token_id, waited_for=np.inf)  # somebody pressed a button
    lost = costs(alone.heads, alone.sublayers)  # (L, H + 1)
    parts = parts_of(trace.config)

    def reason(place: int) -> Reason:
        part, key, weight = parts[place], None, 0.0
        if part.head is not None:
            weights = trace[f"blocks.{part.layer}.attn.pattern"][part.head, position, : position + 1]
            key, weight = int(weights.argmax()), float(weights.max())
        return Reason(part, float(raised.flat[place]), float(lost.flat[place]), key, weight)

    reasons = tuple(reason(place) for place in most(raised))
    dearest = int(lost.argmax())
    together = None
    if len(reasons) > 1:
        silenced = trace.outcome(position, token_id, (*trace.edits, *(each.part.silenced for each in reasons)))
        cost = float(alone.before - silenced[1] / np.log(2))
        together = cost if cost - sum(each.costs for each in reasons) >= DECISIVE else None
    partner = None
    if reasons:
        also = ablation(trace, position, token_id, (reasons[0].part.silenced,), waited_for=np.inf)
        both = costs(also.heads, also.sublayers)
        more = both - lost - reasons[0].costs  # than the two cost one by one
        more.flat[parts.index(reasons[0].part)] = -np.inf
        if more.max() >= DECISIVE:
            place = int(more.argmax())
            partner = reason(place), float(both.flat[place])
    most_missed = parts[dearest], float(lost.flat[dearest])
    return Why(token_id, rival_id, alone.before, added.logit, reasons, most_missed, partner, together)


def raises(added: Attribution) -> np.ndarray:
    """(L, H + 1) what each head, and each feed-forward, adds."""
    return np.concatenate((added.heads, added.feed_forward[:, None]), axis=1)


def raised_by(trace: Trace, position: int, token_id: int, rival_id: int) -> dict[Part, float]:
    """What each part adds to the token's lead over its rival."""
    added = raises(attribution(trace, position, token_id, rival_id))
    return dict(zip(parts_of(trace.config), added.ravel().tolist(), strict=True))


def parts_of(config: ModelConfig) -> list[Part]:
    """All heads and feed-forwards, in the order of a flattened (L, H + 1)."""
    heads = [*range(config.num_heads), None]
    return [Part(layer, head) for layer in range(config.num_layers) for head in heads]


def costs(heads: np.ndarray, sublayers: np.ndarray) -> np.ndarray:
    """(L, H + 1) bits lost without each head, and without each feed-forward."""
    return -np.concatenate((heads, sublayers[:, 1:]), axis=1)


def most(raised: np.ndarray) -> Iterator[int]:
    """Places, in the flattened array, of what raises most and enough to be named."""
    least = LEAST_SHARE * raised[raised > 0].sum()
    for place in np.argsort(-raised, axis=None, kind="stable")[:MOST_PARTS]:
        if raised.flat[place] > 0 and raised.flat[place] >= least:
            yield int(place)
