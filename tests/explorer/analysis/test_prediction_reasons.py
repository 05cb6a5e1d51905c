"""The redundancy search finds the sets of components whose joint ablation exceeds the sum of single ones most."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.prediction_reasons import MAX_CANDIDATES, MAX_SET_SIZE, ModelComponent, find_redundancy
from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture


def log2_p(lm, token_ids, edits, token_id) -> float:
    logits = capture(lm, token_ids, edits)["logits"][9].astype(np.float64)
    return (logits[token_id] - np.logaddexp.reduce(logits)) / np.log(2)


@pytest.mark.parametrize("edits", ["", "embed*scale*2"])
def test_redundancy_sets_have_largest_excess_of_their_size(lms, style, capture_trace, edits):
    lm, ids = lms[style], capture_trace(style).token_ids
    trace = capture(lm, ids, parse_interventions(edits))
    redundancy = find_redundancy(trace, 9, target=2)
    order = np.argsort(-trace["logits"][9], kind="stable")
    assert (redundancy.token_id, redundancy.contrast_id) == (order[1], order[0])
    added = direct_logit_attribution(trace, 9, int(order[1]), int(order[0]))
    adds = {ModelComponent(i, j): added.heads[i, j] for i, j in np.ndindex(added.heads.shape)}
    adds |= {ModelComponent(i): value for i, value in enumerate(added.feed_forward)}
    expected = sorted((component for component in adds if adds[component] > 0), key=lambda component: -adds[component])[
        :MAX_CANDIDATES
    ]
    assert list(redundancy.candidates) == expected

    @cache
    def cost(*components: ModelComponent) -> float:
        ablated = [*parse_interventions(edits), *(component.ablation for component in components)]
        return log2_p(lm, ids, parse_interventions(edits), redundancy.token_id) - log2_p(
            lm, ids, ablated, redundancy.token_id
        )

    sizes = range(2, min(MAX_SET_SIZE, len(expected)) + 1)
    assert [len(component_set.components) for component_set in redundancy.sets] == list(sizes)
    for component_set in redundancy.sets:
        excess = {
            components: cost(*components) - sum(map(cost, components))
            for components in combinations(expected, len(component_set.components))
        }
        assert component_set.excess == pytest.approx(max(excess.values()), abs=1e-4)
        assert excess[component_set.components] == pytest.approx(component_set.excess, abs=1e-4)
        assert component_set.joint_cost == pytest.approx(cost(*component_set.components), abs=1e-4)
        assert component_set.single_costs == pytest.approx([*map(cost, component_set.components)], abs=1e-4)
