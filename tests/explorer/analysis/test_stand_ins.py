"""Of all sets of the parts that are asked, those that cost most beyond the sum are found."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from explorer.analysis.attribution import attribution
from explorer.analysis.stand_ins import MOST_IN_A_SET, MOST_PARTS, stand_ins
from explorer.analysis.why import Part
from explorer.state.interventions import parse_edits
from explorer.tracing.capture import capture


def log2_p(lm, token_ids, edits, token_id) -> float:
    logits = capture(lm, token_ids, edits)["logits"][9].astype(np.float64)
    return (logits[token_id] - np.logaddexp.reduce(logits)) / np.log(2)


@pytest.mark.parametrize("edits", ["", "embed*scale*2"])
def test_the_sets_are_the_best_of_their_size(lms, style, trace_of, edits):
    lm, ids = lms[style], trace_of(style).token_ids
    trace = capture(lm, ids, parse_edits(edits))
    found = stand_ins(trace, 9, target=2)
    order = np.argsort(-trace["logits"][9], kind="stable")
    assert (found.token_id, found.rival_id) == (order[1], order[0])
    added = attribution(trace, 9, int(order[1]), int(order[0]))
    adds = {Part(i, j): added.heads[i, j] for i, j in np.ndindex(added.heads.shape)}
    adds |= {Part(i): value for i, value in enumerate(added.feed_forward)}
    expected = sorted((part for part in adds if adds[part] > 0), key=lambda part: -adds[part])[:MOST_PARTS]
    assert list(found.asked) == expected

    @cache
    def cost(*parts: Part) -> float:
        silenced = [*parse_edits(edits), *(part.silenced for part in parts)]
        return log2_p(lm, ids, parse_edits(edits), found.token_id) - log2_p(lm, ids, silenced, found.token_id)

    sizes = range(2, min(MOST_IN_A_SET, len(expected)) + 1)
    assert [len(each.parts) for each in found.sets] == list(sizes)
    for each in found.sets:
        excess = {parts: cost(*parts) - sum(map(cost, parts)) for parts in combinations(expected, len(each.parts))}
        assert each.excess == pytest.approx(max(excess.values()), abs=1e-4)
        assert excess[each.parts] == pytest.approx(each.excess, abs=1e-4)
        assert each.together == pytest.approx(cost(*each.parts), abs=1e-4)
        assert each.alone == pytest.approx([*map(cost, each.parts)], abs=1e-4)
