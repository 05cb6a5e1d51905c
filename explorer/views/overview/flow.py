"""What flows between the parts on the map of a model: lines, as thick as vectors are long where they are written."""

from collections.abc import Iterator
from itertools import pairwise

from explorer.analysis.overview import Overview
from explorer.architecture.layout import layout
from explorer.architecture.stream import giver, has_final_norm, readers
from explorer.views.overview.diagram import Line
from explorer.views.overview.plan import Plan

THIN = 1.2


def flows(plan: Plan, found: Overview) -> Iterator[Line]:
    """All vectors on the stream and those added to it: one scale of thickness for all."""
    longest = max(found.stream.max(), found.writes.max(), found.token, found.positions) or 1.0

    def flow(kind: str, length: float, *spots: tuple[float, float]) -> Line:
        return Line(kind, plan.corners(*spots), max(1.0, plan.thickest * float(length / longest)))

    for layer, (attention, feed_forward) in enumerate(found.writes):
        along = plan.place(layer, "add_attn")
        yield flow("attention", attention, (along, written_at(plan, layer, "attn")), (along, plan.stream))
        along = plan.place(layer, "add_ffn")
        yield flow("feed_forward", feed_forward, (along, written_at(plan, layer, "ffn")), (along, plan.stream))
    start = plan.token[1]
    if found.positions:
        added, across = plan.position_added, sum(plan.position) / 2
        yield flow("embedding", found.positions, (start, across), (added, across), (added, plan.stream))
        yield flow("embedding", found.token, (start, plan.stream), (added, plan.stream))
        start = added
    ends = [start, *plan.changes(), plan.after("final_norm" if has_final_norm(plan.config) else "lm_head")]
    for length, (first, last) in zip(found.stream, pairwise(ends), strict=True):
        yield flow("residual", length, (first, plan.stream), (last, plan.stream))


def written_at(plan: Plan, layer: int, sublayer: str) -> float:
    """Where across what a sublayer adds to the stream comes from: its last part, or the norm after that."""
    name = layout(plan.config).writes[sublayer]
    return plan.norm(layer, name)[1] if giver(plan.config, name) else given_at(plan, sublayer)


def given_at(plan: Plan, sublayer: str) -> float:
    """Where across a sublayer ends."""
    return {"attn": plan.o_proj[1], "ffn": plan.feed_forward[0]}[sublayer]


def wires(plan: Plan) -> Iterator[Line]:
    """Where vectors are read, and how they pass through a sublayer."""

    def wire(*spots: tuple[float, float]) -> Line:
        return Line("residual", plan.corners(*spots), THIN, arrow=True)

    yield wire((plan.after("lm_head_end"), plan.stream), (plan.after("list") - 3, plan.stream))
    if has_final_norm(plan.config):
        yield wire((plan.after("final_norm"), plan.stream), (plan.after("lm_head"), plan.stream))
    for layer in range(plan.config.num_layers):
        along = plan.place(layer, "add_attn")
        yield wire((along, plan.heads[1]), (along, plan.o_proj[0]))
        ends, shared = {"attn": plan.heads[1], "ffn": plan.feed_forward[0]}, set()
        for sublayer, norm in layout(plan.config).reads.items():
            along = plan.place(layer, f"read_{sublayer}")
            way = [(along, plan.stream)]
            if len(readers(plan.config, norm)) > 1:
                shared.add(norm)
                way = [plan.norm(layer, norm), (along, plan.norm(layer, norm)[1])]
            yield wire(*way, (along, ends[sublayer]))
        for norm, sublayer in ((norm, giver(plan.config, norm)) for norm in layout(plan.config).norms):
            if sublayer:
                along, across = plan.norm(layer, norm)
                yield wire((along, given_at(plan, sublayer)), (along, across))
        for along, across in (plan.norm(layer, norm) for norm in shared):
            yield wire((along, plan.stream), (along, across))


def rotations(plan: Plan) -> Iterator[Line]:
    """How the angles of the positions reach the attention of every layer that turns; none in a model that does not."""
    middles = [plan.middle(layer) for layer in range(plan.config.num_layers) if plan.config.rotates(layer)]
    if not middles:
        return
    all_along = plan.corners((plan.start + 2, plan.rotary), (middles[-1], plan.rotary))
    yield Line("embedding", all_along, THIN)
    for along in middles:
        yield Line("embedding", plan.corners((along, plan.rotary), (along, plan.heads[0])), THIN, arrow=True)
