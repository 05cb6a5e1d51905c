"""How the numbers on the map come about, and those of the running sum below it."""

from collections.abc import Iterable

from explorer.analysis.attribution import is_put_in
from explorer.analysis.next_token import ranking
from explorer.analysis.residual import stages
from explorer.architecture.shifts import has_shifts
from explorer.architecture.stream import all_norms, all_sums
from explorer.explain.analysed.attribution import head_part, logit_part
from explorer.explain.analysed.prediction import next_token_probability
from explorer.explain.analysed.residual import divisor, length
from explorer.explain.derivation import Derivation
from explorer.explain.point import Point, nth
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.explained import explained
from explorer.views.overview.diagram import Part

ADDS = {"token": "token", "position": "position", "o_proj": "attention", "feed_forward": "feed_forward"}


def inspect_part(trace: Trace, selection: Selection, parts: Iterable[Part], point: Point) -> Derivation | None:
    """What a part of the map, the point's `item` among them, adds to the explained logit, or what else it does; None of
    the turn of q and k, which is an angle a pair."""
    parts, item = list(parts), point.of("item")
    part = nth(parts, item)
    kind, selects = part.kind, part.selects
    before = sum(other.kind == kind for other in parts[:item])
    token_id, rival_id = explained(trace, selection)
    query = selection.query
    if kind == "head":
        return head_part(trace, query, token_id, rival_id, selects["layer"], selects["head"])
    if kind in ADDS:
        return logit_part(trace, query, token_id, rival_id, ADDS[kind], selects.get("layer", 0))
    if kind == "norm":
        return divisor(trace, norm_named(trace, before), query)
    if kind == "addition":
        return length(trace, stage_after(trace, before), query)
    if kind == "lm_head":
        return logit_part(trace, query, token_id, rival_id, "logit")
    if kind == "next_token":
        return next_token_probability(trace, query, int(ranking(trace, query)[selects["target"] - 1]))
    return None


def norm_named(trace: Trace, norm: int) -> str:
    """The name of a norm, the norms counted in the order of the data's way."""
    return all_norms(trace.config)[norm]


def stage_after(trace: Trace, addition: int) -> int:
    """Which of the `stages` an addition leads to, the additions counted in the order of the data's way."""
    if "position_embed" in trace:
        if not addition:
            return 0
        addition -= 1
    taps = [stage.tap for stage in stages(trace)]
    return taps.index(all_sums(trace.config)[addition])


def inspect_step(trace: Trace, selection: Selection, point: Point) -> Derivation:
    """A bar of the running sum, or the last one, which is all of it."""
    layers = range(trace.config.num_layers)
    each = [(part, layer) for layer in layers for part in ("attention", "feed_forward")]
    first = [("token", 0), *[("position", 0)] * ("position_embed" in trace)]
    last = [*[("shift", 0)] * (has_shifts(trace.config)), *[("changes", 0)] * is_put_in(trace), ("sum", 0)]
    steps = [*first, *each, *last]
    part, layer = nth(steps, point.of("item"))
    return logit_part(trace, selection.query, *explained(trace, selection), part, layer)
