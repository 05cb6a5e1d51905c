"""Lines between the parts on the map of a model, as thick as their vectors' norms are large where they are written."""

from collections.abc import Iterator
from itertools import pairwise

from explorer.analysis.direct_logit_attribution import Overview
from explorer.architecture.block_layout import block_layout
from explorer.architecture.residual_stream import has_final_norm, normalised_sublayer, sublayers_reading
from explorer.views.overview.map_data import MapLine
from explorer.views.overview.map_layout import MapLayout

THIN = 1.2


def residual_lines(plan: MapLayout, overview: Overview) -> Iterator[MapLine]:
    """Yield the lines of all vectors on the stream and of those added to it, with one scale of line widths."""
    max_norm = max(overview.stream.max(), overview.write_norms.max(), overview.token, overview.positions) or 1.0

    def flow(kind: str, norm: float, *points: tuple[float, float]) -> MapLine:
        return MapLine(kind, plan.corners(*points), max(1.0, plan.max_line_width * float(norm / max_norm)))

    for layer, (attention, feed_forward) in enumerate(overview.write_norms):
        along = plan.offset(layer, "add_attn")
        yield flow("attention", attention, (along, output_offset(plan, layer, "attn")), (along, plan.stream))
        along = plan.offset(layer, "add_ffn")
        yield flow("feed_forward", feed_forward, (along, output_offset(plan, layer, "ffn")), (along, plan.stream))
    start = plan.token[1]
    if overview.positions:
        added, across = plan.position_added, sum(plan.position) / 2
        yield flow("embedding", overview.positions, (start, across), (added, across), (added, plan.stream))
        yield flow("embedding", overview.token, (start, plan.stream), (added, plan.stream))
        start = added
    ends = [
        start,
        *plan.change_offsets(),
        plan.offset_after_blocks("final_norm" if has_final_norm(plan.config) else "lm_head"),
    ]
    for length, (first, last) in zip(overview.stream, pairwise(ends), strict=True):
        yield flow("residual", length, (first, plan.stream), (last, plan.stream))


def output_offset(plan: MapLayout, layer: int, sublayer: str) -> float:
    """Return the offset across of a sublayer's output: the end of its last part, or the norm after it."""
    name = block_layout(plan.config).writes[sublayer]
    return plan.norm(layer, name)[1] if normalised_sublayer(plan.config, name) else sublayer_end(plan, sublayer)


def sublayer_end(plan: MapLayout, sublayer: str) -> float:
    """Return the offset across of a sublayer's end."""
    return {"attn": plan.o_proj[1], "ffn": plan.feed_forward[0]}[sublayer]


def stream_read_lines(plan: MapLayout) -> Iterator[MapLine]:
    """Yield the thin lines along which sublayers and the unembedding read the stream."""

    def wire(*points: tuple[float, float]) -> MapLine:
        return MapLine("residual", plan.corners(*points), THIN, arrow=True)

    yield wire(
        (plan.offset_after_blocks("lm_head_end"), plan.stream), (plan.offset_after_blocks("list") - 3, plan.stream)
    )
    if has_final_norm(plan.config):
        yield wire(
            (plan.offset_after_blocks("final_norm"), plan.stream), (plan.offset_after_blocks("lm_head"), plan.stream)
        )
    for layer in range(plan.config.num_layers):
        along = plan.offset(layer, "add_attn")
        yield wire((along, plan.heads[1]), (along, plan.o_proj[0]))
        ends, shared_norms = {"attn": plan.heads[1], "ffn": plan.feed_forward[0]}, set()
        for sublayer, norm in block_layout(plan.config).reads.items():
            along = plan.offset(layer, f"read_{sublayer}")
            path = [(along, plan.stream)]
            if len(sublayers_reading(plan.config, norm)) > 1:
                shared_norms.add(norm)
                path = [plan.norm(layer, norm), (along, plan.norm(layer, norm)[1])]
            yield wire(*path, (along, ends[sublayer]))
        for norm, sublayer in (
            (norm, normalised_sublayer(plan.config, norm)) for norm in block_layout(plan.config).norms
        ):
            if sublayer:
                along, across = plan.norm(layer, norm)
                yield wire((along, sublayer_end(plan, sublayer)), (along, across))
        for along, across in (plan.norm(layer, norm) for norm in shared_norms):
            yield wire((along, plan.stream), (along, across))


def rope_lines(plan: MapLayout) -> Iterator[MapLine]:
    """Yield the lines of the rotation angles to every layer with RoPE; none for a model without."""
    middles = [plan.heads_centre(layer) for layer in range(plan.config.num_layers) if plan.config.has_rope(layer)]
    if not middles:
        return
    all_along = plan.corners((plan.start + 2, plan.rotary), (middles[-1], plan.rotary))
    yield MapLine("embedding", all_along, THIN)
    for along in middles:
        yield MapLine("embedding", plan.corners((along, plan.rotary), (along, plan.heads[0])), THIN, arrow=True)
