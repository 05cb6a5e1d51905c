"""What flows between the parts on the map of a model: lines, as thick as vectors are long where they are written."""

from collections.abc import Iterator
from itertools import pairwise

from explorer.analysis.overview import Overview
from explorer.views.overview import plan as at
from explorer.views.overview.diagram import Line
from explorer.views.overview.plan import Plan

THIN = 1.2


def flows(plan: Plan, found: Overview) -> Iterator[Line]:
    """All vectors on the stream and those added to it: one scale of thickness for all."""
    longest = max(found.stream.max(), found.writes.max(), found.token, found.positions) or 1.0

    def flow(kind: str, length: float, *corners: float) -> Line:
        return Line(kind, corners, max(1.0, plan.thickest * float(length / longest)))

    for layer, (attention, feed_forward) in enumerate(found.writes):
        x = plan.place(layer, "add_attn")
        yield flow("attention", attention, x, at.O_PROJ[1], x, at.STREAM)
        x = plan.place(layer, "add_ffn")
        yield flow("feed_forward", feed_forward, x, at.FEED_FORWARD[0], x, at.STREAM)
    start = at.TOKEN[1]
    if found.positions:
        x, y = at.POSITION_ADDED, sum(at.POSITION) / 2
        yield flow("embedding", found.positions, start, y, x, y, x, at.STREAM)
        yield flow("embedding", found.token, start, at.STREAM, x, at.STREAM)
        start = x
    ends = [start, *plan.changes(), at.LM_HEAD[0] if plan.post else at.FINAL_NORM]
    for length, (left, right) in zip(found.stream, pairwise(ends), strict=True):
        yield flow("residual", length, left, at.STREAM, right, at.STREAM)


def wires(plan: Plan) -> Iterator[Line]:
    """Where vectors are read, and how they pass through a sublayer."""

    def wire(*corners: float) -> Line:
        return Line("residual", corners, THIN, arrow=True)

    yield wire(at.LM_HEAD[1], at.STREAM, at.NEXT_TOKENS[0] - 3, at.STREAM)
    if not plan.post:
        yield wire(at.FINAL_NORM, at.STREAM, at.LM_HEAD[0], at.STREAM)
    for layer in range(plan.config.num_layers):
        for name, start, end in (
            ("read_attn", at.STREAM, at.HEADS[1]),
            ("add_attn", at.HEADS[1], at.O_PROJ[0]),
            ("read_ffn", at.STREAM, at.FEED_FORWARD[0]),
        ):
            x = plan.place(layer, name)
            yield wire(x, start, x, end)


def rotations(plan: Plan) -> Iterator[Line]:
    """How the angles of the positions reach every layer's attention; none in a model that does not rotate."""
    if plan.config.position != "rope":
        return
    middles = [plan.at(layer, 0.5) for layer in range(plan.config.num_layers)]
    yield Line("embedding", (at.LEFT + 2, at.ROTATION, middles[-1], at.ROTATION), THIN)
    for x in middles:
        yield Line("embedding", (x, at.ROTATION, x, at.HEADS[0]), THIN, arrow=True)
