"""Reasons for a prediction: components with the largest direct effects, their ablation costs, and redundant sets."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    LogitAttribution,
    direct_logit_attribution,
)
from explorer.analysis.intervention_effects import ablation_effects, captured_logit_and_log_probability
from explorer.analysis.next_token import ranking_without_interventions
from explorer.analysis.token_contributions import attribution_by_source, largest_earlier_source
from explorer.interventions import Intervention, make_intervention
from explorer.tracing.trace import Trace
from model.config import ModelConfig

MAX_COMPONENTS = 3
MIN_SHARE = 0.1  # of the sum of positive effects
DECISIVE_BITS = 0.5  # the probability falls to 71 %


@dataclass(frozen=True)
class ModelComponent:
    """An attention head, or the feed-forward of a layer.

    Attributes:
        head: None for the feed-forward.
    """

    layer: int
    head: int | None = None

    @property
    def ablation(self) -> Intervention:
        if self.head is None:
            return make_intervention(f"blocks.{self.layer}.ffn.hidden", "zero")
        return make_intervention(f"blocks.{self.layer}.attn.z", "zero", index=self.head)


@dataclass(frozen=True)
class PredictionReason:
    """One component's direct effect on the prediction, and its ablation cost.

    Attributes:
        effect: contribution to the logit difference (direct logit attribution).
        cost: bits of log₂ p that the token loses if the component alone is ablated; below 0 it gains them.
        key: position that the head attends to most; None for a feed-forward.
        weight: attention weight of that key.
    """

    component: ModelComponent
    effect: float
    cost: float
    key: int | None = None
    weight: float = 0.0


@dataclass(frozen=True)
class PredictionReasons:
    """Reasons for the prediction of a target token rather than a contrast token after a position.

    Attributes:
        token_id, contrast_id: the target token, and the most probable other one.
        log2_p: log₂ of the target's probability.
        logit_difference: target logit − contrast logit; below 0 the contrast token is more probable.
        reasons: the components with the largest direct effects, at most `MAX_COMPONENTS`, each with at least
            `MIN_SHARE` of the sum of all positive effects.
        costliest: the component with the largest ablation cost, and this cost in bits.
        partner: the component with the largest additional cost once the first of the reasons is ablated, and the
            joint cost of both in bits; None if there is no reason, or no additional cost of at least
            `DECISIVE_BITS`.
        joint_cost: cost of ablating all reasons in bits; None unless it exceeds the sum of their single costs by
            `DECISIVE_BITS`.
        look_back: the head and earlier key that add most to the target's own logit, as the whole model's sentence has
            them; None if no earlier token adds to it.
        look_back_head: what this head adds to that logit over all keys, and the change of the logit if it is ablated.
    """

    token_id: int
    contrast_id: int
    log2_p: float
    logit_difference: float
    reasons: tuple[PredictionReason, ...]
    costliest: tuple[ModelComponent, float]
    partner: tuple[PredictionReason, float] | None
    joint_cost: float | None = None
    look_back: PredictionReason | None = None
    look_back_head: tuple[float, float] | None = None


def prediction_reasons(trace: Trace, position: int, target: int = 1) -> PredictionReasons:
    """Return the reasons for the token of rank `target` after a position.

    The first call runs the model twice for every component.

    Raises:
        ValueError: the trace has no model to run again.
    """
    order = ranking_without_interventions(trace, position)
    token_id, contrast_id = int(order[target - 1]), int(order[0 if target > 1 else 1])
    logit_attribution = direct_logit_attribution(trace, position, token_id, contrast_id)
    effects = effects_by_component(logit_attribution)
    single_ablation = ablation_effects(
        trace, position, token_id, max_wait_macs=np.inf
    )  # the user requested it, so any wait is accepted
    costs = ablation_costs(single_ablation.heads, single_ablation.sublayers)  # (L, H + 1)
    components = list_components(trace.config)

    def make_reason(index: int) -> PredictionReason:
        component, key, weight = components[index], None, 0.0
        if component.head is not None:
            weights = trace[f"blocks.{component.layer}.attn.pattern"][component.head, position, : position + 1]
            key, weight = int(weights.argmax()), float(weights.max())
        return PredictionReason(component, float(effects.flat[index]), float(costs.flat[index]), key, weight)

    reasons = tuple(make_reason(index) for index in iter_largest_effects(effects))
    costliest = int(costs.argmax())
    joint_cost = None
    if len(reasons) > 1:
        outcome = trace.logit_and_log_probability(
            position, token_id, (*trace.edits, *(entry.component.ablation for entry in reasons))
        )
        cost = float(single_ablation.before - outcome[1] / np.log(2))
        joint_cost = cost if cost - sum(entry.cost for entry in reasons) >= DECISIVE_BITS else None
    partner = None
    if reasons:
        second_ablation = ablation_effects(
            trace, position, token_id, (reasons[0].component.ablation,), max_wait_macs=np.inf
        )
        pair_costs = ablation_costs(second_ablation.heads, second_ablation.sublayers)
        extra_costs = pair_costs - costs - reasons[0].cost  # beyond the sum of the single costs
        extra_costs.flat[components.index(reasons[0].component)] = -np.inf
        if extra_costs.max() >= DECISIVE_BITS:
            index = int(extra_costs.argmax())
            partner = make_reason(index), float(pair_costs.flat[index])
    look_back = look_back_head = None
    sources = attribution_by_source(trace, position, token_id)
    if source := largest_earlier_source(sources, position):
        layer, head, key = source
        weight = float(trace[f"blocks.{layer}.attn.pattern"][head, position, key])
        cost = float(costs[layer, head])
        look_back = PredictionReason(ModelComponent(layer, head), float(sources.effects[source]), cost, key, weight)
        without = (*trace.edits, look_back.component.ablation)
        before = captured_logit_and_log_probability(trace, position, token_id)[0]
        change = trace.logit_and_log_probability(position, token_id, without)[0] - before
        look_back_head = float(sources.effects[layer, head].sum()), float(change)
    costliest_component = components[costliest], float(costs.flat[costliest])
    return PredictionReasons(
        token_id,
        contrast_id,
        single_ablation.before,
        logit_attribution.logit,
        reasons,
        costliest_component,
        partner,
        joint_cost,
        look_back,
        look_back_head,
    )


def effects_by_component(logit_attribution: LogitAttribution) -> np.ndarray:
    """Return the contributions of each head and each feed-forward, (L, H + 1)."""
    return np.concatenate((logit_attribution.heads, logit_attribution.feed_forward[:, None]), axis=1)


def direct_effects(trace: Trace, position: int, token_id: int, contrast_id: int) -> dict[ModelComponent, float]:
    """Return the contribution of each component to the logit difference of two tokens."""
    effects = effects_by_component(direct_logit_attribution(trace, position, token_id, contrast_id))
    return dict(zip(list_components(trace.config), effects.ravel().tolist(), strict=True))


def list_components(config: ModelConfig) -> list[ModelComponent]:
    """Return all heads and feed-forwards, in the order of a flattened (L, H + 1) array."""
    heads = [*range(config.num_heads), None]
    return [ModelComponent(layer, head) for layer in range(config.num_layers) for head in heads]


def ablation_costs(heads: np.ndarray, sublayers: np.ndarray) -> np.ndarray:
    """Return the bits lost without each head and each feed-forward, (L, H + 1)."""
    return -np.concatenate((heads, sublayers[:, 1:]), axis=1)


def iter_largest_effects(effects: np.ndarray) -> Iterator[int]:
    """Yield the indices, in the flattened array, of the largest effects that reach the minimum share."""
    min_effect = MIN_SHARE * effects[effects > 0].sum()
    for index in np.argsort(-effects, axis=None, kind="stable")[:MAX_COMPONENTS]:
        if effects.flat[index] > 0 and effects.flat[index] >= min_effect:
            yield int(index)


MAX_CANDIDATES = 6  # candidates for the sets
MAX_SET_SIZE = 4


@dataclass(frozen=True)
class JointAblation:
    """Components that are ablated together.

    Attributes:
        components: two or more.
        single_costs: bits of log₂ p that the token loses without each alone; below 0 it gains them.
        joint_cost: bits that it loses without all.
    """

    components: tuple[ModelComponent, ...]
    single_costs: tuple[float, ...]
    joint_cost: float

    @property
    def excess(self) -> float:
        """Joint cost minus the sum of the single costs, in bits."""
        return self.joint_cost - sum(self.single_costs)


@dataclass(frozen=True)
class RedundantComponents:
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
    candidates: tuple[ModelComponent, ...]
    sets: tuple[JointAblation, ...]


def find_redundancy(trace: Trace, position: int, target: int = 1) -> RedundantComponents:
    """Search for redundant components in the prediction of the token of rank `target` after a position.

    Runs every set of at most `MAX_SET_SIZE` of the `MAX_CANDIDATES` components with the largest direct effects.

    Raises:
        ValueError: the trace has no model to run again.
        BudgetExceededError, RequestCancelledError: see `explorer.tracing.jobs`.
    """
    order = ranking_without_interventions(trace, position)
    token_id, contrast_id = int(order[target - 1]), int(order[0 if target > 1 else 1])
    before = captured_logit_and_log_probability(trace, position, token_id)[1] / np.log(2)
    effects = direct_effects(trace, position, token_id, contrast_id)
    candidates = [
        component
        for component, effect in sorted(effects.items(), key=lambda item: -item[1])[:MAX_CANDIDATES]
        if effect > 0
    ]

    def cost(components: tuple[ModelComponent, ...]) -> float:
        interventions = (*trace.edits, *(component.ablation for component in components))
        return float(before - trace.logit_and_log_probability(position, token_id, interventions)[1] / np.log(2))

    single_costs = {component: cost((component,)) for component in candidates}
    best = []
    for size in range(2, min(MAX_SET_SIZE, len(candidates)) + 1):
        sets = (
            JointAblation(components, tuple(single_costs[p] for p in components), cost(components))
            for components in combinations(candidates, size)
        )
        best.append(max(sets, key=lambda item: item.excess))
    return RedundantComponents(token_id, contrast_id, float(before), tuple(candidates), tuple(best))
