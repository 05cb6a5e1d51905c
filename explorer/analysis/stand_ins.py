"""Parts that stand in for one another: silenced together they cost more than the sum of what each costs alone."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from explorer.analysis.combination import captured
from explorer.analysis.next_token import ranking
from explorer.analysis.why import Part, raised_by
from explorer.tracing.trace import Trace

MOST_PARTS = 6  # that sets are made of: 57 sets of two and more
MOST_IN_A_SET = 4


@dataclass(frozen=True)
class SilencedSet:
    """Some parts, silenced together.

    Attributes:
        parts: two or more.
        alone: bits of log₂ p that the token loses without each alone; below 0 it wins them.
        together: bits that it loses without all.
    """

    parts: tuple[Part, ...]
    alone: tuple[float, ...]
    together: float

    @property
    def excess(self) -> float:
        """Bits by which the joint effect exceeds the sum of the single ones."""
        return self.together - sum(self.alone)


@dataclass(frozen=True)
class StandIns:
    """Which parts stand in for one another in the prediction of a token.

    Attributes:
        token_id, rival_id: the token, and the likeliest other one.
        log2_p: log₂ of the token's probability with nothing silenced.
        asked: the parts that sets were made of: those that add most to the token's lead over its rival.
        sets: of each size from 2 the set whose joint effect most exceeds the sum.
    """

    token_id: int
    rival_id: int
    log2_p: float
    asked: tuple[Part, ...]
    sets: tuple[SilencedSet, ...]


def stand_ins(trace: Trace, position: int, target: int = 1) -> StandIns:
    """Of the token of a rank after a position. Every set of at most `MOST_IN_A_SET` among the `MOST_PARTS` parts that
    raise the token's lead most is run, so that none is missed among these.

    Raises:
        ValueError: the trace knows no model to run again.
        TooMuch, GivenUp: see `explorer.tracing.work.go_on`.
    """
    order = ranking(trace, position)
    token_id, rival_id = int(order[target - 1]), int(order[0 if target > 1 else 1])
    before = captured(trace, position, token_id)[1] / np.log(2)
    raised = raised_by(trace, position, token_id, rival_id)
    asked = [part for part, adds in sorted(raised.items(), key=lambda each: -each[1])[:MOST_PARTS] if adds > 0]

    def cost(parts: tuple[Part, ...]) -> float:
        edits = (*trace.edits, *(part.silenced for part in parts))
        return float(before - trace.outcome(position, token_id, edits)[1] / np.log(2))

    alone = {part: cost((part,)) for part in asked}
    best = []
    for size in range(2, min(MOST_IN_A_SET, len(asked)) + 1):
        sets = (SilencedSet(parts, tuple(alone[p] for p in parts), cost(parts)) for parts in combinations(asked, size))
        best.append(max(sets, key=lambda each: each.excess))
    return StandIns(token_id, rival_id, float(before), tuple(asked), tuple(best))
