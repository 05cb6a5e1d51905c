"""Derivations of the numbers on the map and of the running sum below it."""

from collections.abc import Iterable

from explorer.analysis.direct_logit_attribution import has_intervention_additions
from explorer.analysis.next_token import ranking_without_interventions
from explorer.analysis.residual import residual_stages
from explorer.architecture.logits import has_logit_constants
from explorer.architecture.residual_stream import all_norms, residual_sum_taps
from explorer.explain.clicked_point import ClickedPoint, get_item
from explorer.explain.derivation import Derivation
from explorer.explain.derived.attribution import component_contribution, head_contribution
from explorer.explain.derived.prediction import next_token_probability
from explorer.explain.derived.residual import norm_divisor, residual_norm
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.labels import target_and_contrast
from explorer.views.overview.map_data import MapPart

ADDS = {"token": "token", "position": "position", "o_proj": "attention", "feed_forward": "feed_forward"}


def inspect_part(
    trace: Trace, selection: Selection, map_parts: Iterable[MapPart], point: ClickedPoint
) -> Derivation | None:
    """Derive the number of a map part, the one with the point's `item` as its index.

    It is a contribution to the explained logit, or a norm's divisor, a vector's norm or a probability; None for
    the rotation of q and k, which has an angle for each pair of dimensions.
    """
    map_parts, item = list(map_parts), point.coordinate("item")
    map_part = get_item(map_parts, item)
    kind, selects = map_part.kind, map_part.selects
    index_in_kind = sum(other.kind == kind for other in map_parts[:item])
    token_id, contrast_id = target_and_contrast(trace, selection)
    query = selection.query
    if kind == "head":
        return head_contribution(trace, query, token_id, contrast_id, selects["layer"], selects["head"])
    if kind in ADDS:
        return component_contribution(trace, query, token_id, contrast_id, ADDS[kind], selects.get("layer", 0))
    if kind == "norm":
        return norm_divisor(trace, norm_name(trace, index_in_kind), query)
    if kind == "addition":
        return residual_norm(trace, stage_index_after_addition(trace, index_in_kind), query)
    if kind == "lm_head":
        return component_contribution(trace, query, token_id, contrast_id, "logit")
    if kind == "next_token":
        return next_token_probability(
            trace, query, int(ranking_without_interventions(trace, query)[selects["target"] - 1])
        )
    return None


def norm_name(trace: Trace, index: int) -> str:
    """Return the name of a norm by its index in the order of the data flow."""
    return all_norms(trace.config)[index]


def stage_index_after_addition(trace: Trace, index: int) -> int:
    """Return the index of the stage that an addition results in; additions are counted in data-flow order."""
    if "position_embed" in trace:
        if not index:
            return 0
        index -= 1
    taps = [stage.tap for stage in residual_stages(trace)]
    return taps.index(residual_sum_taps(trace.config)[index])


def inspect_running_sum(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive a bar of the running sum; the last one is the total."""
    layers = range(trace.config.num_layers)
    sublayers = [(component, layer) for layer in layers for component in ("attention", "feed_forward")]
    first = [("token", 0), *[("position", 0)] * ("position_embed" in trace)]
    last = [
        *[("shift", 0)] * (has_logit_constants(trace.config)),
        *[("changes", 0)] * has_intervention_additions(trace),
        ("sum", 0),
    ]
    steps = [*first, *sublayers, *last]
    component, layer = get_item(steps, point.coordinate("item"))
    return component_contribution(trace, selection.query, *target_and_contrast(trace, selection), component, layer)
