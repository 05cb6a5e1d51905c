"""Redundant components: sets whose joint ablation costs more than the sum of the single ablations."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from explorer.analysis.intervention_interaction import captured_outcome
from explorer.analysis.next_token import ranking_without_interventions
from explorer.analysis.prediction_reasons import Component, direct_effects
from explorer.tracing.trace import Trace

MAX_COMPONENTS = 6  # candidates for the sets
MAX_SET_SIZE = 4


@dataclass(frozen=True)
class AblatedSet:
    """Components that are ablated together.

    Attributes:
        components: two or more.
        single_costs: bits of log₂ p that the token loses without each alone; below 0 it gains them.
        joint_cost: bits that it loses without all.
    """

    components: tuple[Component, ...]
    single_costs: tuple[float, ...]
    joint_cost: float

    @property
    def excess(self) -> float:
        """Joint cost minus the sum of the single costs, in bits."""
        return self.joint_cost - sum(self.single_costs)


@dataclass(frozen=True)
class Redundancy:
    """Redundant components for the prediction of a token.

    Attributes:
        token_id, contrast_id: the target token, and the most probable other one.
        log2_p: log₂ of the target's probability without ablation.
        candidates: components with the largest direct effects on the logit difference, which the sets consist of.
        sets: for each size from 2, the set with the largest excess.
    """

    token_id: int
    contrast_id: int
    log2_p: float
    candidates: tuple[Component, ...]
    sets: tuple[AblatedSet, ...]


def find_redundancy(trace: Trace, position: int, target: int = 1) -> Redundancy:
    """Search for redundant components in the prediction of the token of rank `target` after a position.

    Runs every set of at most `MAX_SET_SIZE` of the `MAX_COMPONENTS` components with the largest direct effects.

    Raises:
        ValueError: the trace has no model to run again.
        BudgetExceededError, RequestCancelledError: see `explorer.tracing.request_budget`.
    """
    order = ranking_without_interventions(trace, position)
    token_id, contrast_id = int(order[target - 1]), int(order[0 if target > 1 else 1])
    before = captured_outcome(trace, position, token_id)[1] / np.log(2)
    effects = direct_effects(trace, position, token_id, contrast_id)
    candidates = [
        component
        for component, effect in sorted(effects.items(), key=lambda item: -item[1])[:MAX_COMPONENTS]
        if effect > 0
    ]

    def cost(components: tuple[Component, ...]) -> float:
        interventions = (*trace.edits, *(component.ablation for component in components))
        return float(before - trace.outcome(position, token_id, interventions)[1] / np.log(2))

    single_costs = {component: cost((component,)) for component in candidates}
    best = []
    for size in range(2, min(MAX_SET_SIZE, len(candidates)) + 1):
        sets = (
            AblatedSet(components, tuple(single_costs[p] for p in components), cost(components))
            for components in combinations(candidates, size)
        )
        best.append(max(sets, key=lambda item: item.excess))
    return Redundancy(token_id, contrast_id, float(before), tuple(candidates), tuple(best))
