"""The map of the model: its parts in their layout, with lines, labels and numbers of one run or two."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from explorer.analysis.direct_logit_attribution import ForwardPassOverview
from explorer.architecture.residual_stream import block_layout, has_final_norm, normalised_sublayer, sublayers_reading
from explorer.explain.notation import format_contribution, format_number
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.diagnosis_report import DiagnosisReport
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.labels import difference_title
from explorer.views.overview.map_layout import (
    LANDSCAPE_ATTENTION_ADDS,
    LANDSCAPE_ATTENTION_WRITES,
    LANDSCAPE_FEED_FORWARD_ADDS,
    LANDSCAPE_FEED_FORWARD_WRITES,
    LANDSCAPE_STREAM_LENGTHS,
    LANDSCAPE_TITLES,
    PORTRAIT_ATTENTION,
    PORTRAIT_LABELS,
    PORTRAIT_LEFT,
    PORTRAIT_LINE,
    PORTRAIT_RIGHT,
    PORTRAIT_TITLE,
    Box,
    LandscapeLayout,
    MapLayout,
    PortraitLayout,
)
from explorer.views.overview.map_parts import (
    MapArrangement,
    MapLabel,
    MapLine,
    MapPart,
    MapPartBuilder,
    ModelMap,
    NextTokenBox,
)
from explorer.views.style import shorten_token
from explorer.views.two_run_figures import NoDifferenceError
from explorer.views.view import TwoRunRenderer

THIN = 1.2


def residual_lines(plan: MapLayout, overview: ForwardPassOverview) -> Iterator[MapLine]:
    """Yield the lines of all vectors on the stream and of those added to it, with one scale of line widths."""
    max_norm = max(overview.stream.max(), overview.write_norms.max(), overview.token, overview.positions) or 1.0

    def flow(kind: str, norm: float, *points: tuple[float, float]) -> MapLine:
        return MapLine(kind, plan.xy_coordinates(*points), max(1.0, plan.max_line_width * float(norm / max_norm)))

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
        return MapLine("residual", plan.xy_coordinates(*points), THIN, arrow=True)

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
    all_along = plan.xy_coordinates((plan.start + 2, plan.rotary), (middles[-1], plan.rotary))
    yield MapLine("embedding", all_along, THIN)
    for along in middles:
        yield MapLine("embedding", plan.xy_coordinates((along, plan.rotary), (along, plan.heads[0])), THIN, arrow=True)


DISCS = {"norm": N_("norm"), "addition": N_("addition"), "rotation": N_("rotation")}  # as shown


def next_token_labels(plan: MapLayout, next_tokens: Sequence[NextTokenBox], max_chars: int) -> Iterator[MapLabel]:
    """Yield the next tokens, cut to `max_chars` characters, with their probabilities."""
    boxes = [plan.next_token(row) for row in range(len(next_tokens))]
    for next_token, (left, upper, right, lower) in zip(next_tokens, boxes, strict=True):
        height = (upper + lower) / 2 - 3
        yield MapLabel(left + 3, height, shorten_token(next_token.token, max_chars), "token", "start")
        yield MapLabel(right - 3, height, format_number(next_token.probability), "number", "end")
    yield MapLabel(boxes[0][2], boxes[0][1] - 10, _("model’s probability"), "heading", "end")


def landscape_labels(
    plan: LandscapeLayout, overview: ForwardPassOverview, contribution_label: str
) -> Iterator[MapLabel]:
    """Yield the labels of layers and rows and, where there is room, each sublayer's numbers and the stream's norms.

    A sublayer's numbers are its contribution and the norm of what it writes.

    Args:
        contribution_label: the name of contributions.
    """
    layers, left = range(plan.config.num_layers), plan.start - 4
    if not plan.has_room_for_labels:
        yield MapLabel(left, LANDSCAPE_TITLES, _("layer"), "title", "end")
    for layer in layers:
        yield MapLabel(plan.heads_centre(layer), LANDSCAPE_TITLES, plan.title(layer), "title")
    yield MapLabel(left, float(np.mean(plan.heads)), _("attention"), "title", "end")
    yield MapLabel(left, float(np.mean(plan.feed_forward)), _("feed-forward"), "title", "end")
    if plan.config.position == "rope":
        yield MapLabel(left, plan.rotary, _("rotary angles"), side="end")
    if not plan.has_room_for_numbers:
        return
    attention = LANDSCAPE_ATTENTION_ADDS, LANDSCAPE_ATTENTION_WRITES
    feed_forward = LANDSCAPE_FEED_FORWARD_ADDS, LANDSCAPE_FEED_FORWARD_WRITES
    for sublayer, (adds, writes) in enumerate((attention, feed_forward)):
        yield MapLabel(left, adds, contribution_label, "heading", "end")
        yield MapLabel(left, writes, _("length it writes"), "heading", "end")
        for layer in layers:
            x, effect = plan.heads_centre(layer), overview.logit_effects[layer, sublayer]
            yield MapLabel(x, adds, format_signed(effect, plan.has_room_for_labels), "sum")
            yield MapLabel(x, writes, format_number(overview.write_norms[layer, sublayer]), "number")
    yield MapLabel(plan.token[0], LANDSCAPE_STREAM_LENGTHS, _("length ‖x‖₂"), "heading", "start")
    for layer, length in enumerate(residual_norms(plan, overview)):
        yield MapLabel(
            plan.layer_offset(layer, 0) + 6, LANDSCAPE_STREAM_LENGTHS, format_number(length), "number", "end"
        )


def portrait_labels(plan: PortraitLayout, overview: ForwardPassOverview) -> Iterator[MapLabel]:
    """Yield the portrait layout's labels and numbers, in each block for itself."""
    (left, right), after_stream = plan.heads, plan.stream + plan.max_line_width / 2 + 5
    if plan.config.position == "rope":
        yield MapLabel(PORTRAIT_LEFT, plan.start - 8, _("rotary angles"), side="start")
    for layer in range(plan.config.num_layers):
        yield MapLabel(
            left, plan.layer_offset(layer, 0) + PORTRAIT_TITLE, _("layer {layer}", layer=layer), "title", "start"
        )
        yield MapLabel(PORTRAIT_ATTENTION, plan.layer_offset(layer, 0) + PORTRAIT_TITLE, _("attention"), side="end")
        for x, height, sublayer in (
            (right, plan.span(layer, "heads")[1] + PORTRAIT_LABELS, 0),
            (
                PORTRAIT_RIGHT,
                plan.span(layer, "feed_forward")[0] - PORTRAIT_LABELS - PORTRAIT_LINE,
                1,
            ),
        ):
            adds, writes = (
                format_signed(overview.logit_effects[layer, sublayer]),
                format_number(overview.write_norms[layer, sublayer]),
            )
            yield MapLabel(x, height, _("adds {value}", value=adds), "sum", "end")
            yield MapLabel(x, height + PORTRAIT_LINE, _("length {length}", length=writes), "number", "end")
    for layer, length in enumerate(residual_norms(plan, overview)):
        yield MapLabel(
            after_stream,
            plan.layer_offset(layer, 0) + PORTRAIT_TITLE,
            f"‖x‖₂ {format_number(length)}",
            "number",
            "start",
        )


def residual_norms(plan: MapLayout, overview: ForwardPassOverview) -> np.ndarray:
    """Return the stream's norm before each block and after the last."""
    return overview.stream[:: len(plan.change_offsets()) // plan.config.num_layers]


def legend_labels(
    plan: MapLayout, legend: Sequence[tuple[str, Box]], largest: float, contribution_label: str
) -> Iterator[MapLabel]:
    """Yield the labels of the legend's discs and of the colour scale."""
    for kind, (_left, upper, right, lower) in legend:
        yield MapLabel(right + 12, (upper + lower) / 2, translate(DISCS[kind]), side="start")
    left, upper, right, lower = plan.scale
    yield MapLabel((left + right) / 2, upper - 8, contribution_label)
    for x, value, side in ((left, -largest, "start"), ((left + right) / 2, 0.0, "middle"), (right, largest, "end")):
        yield MapLabel(x, lower + 8, format_signed(value), "tick", side)


def format_signed(value: float, has_room: bool = True) -> str:
    """Format with three significant digits and the sign; without room, with two decimals."""
    if not has_room:
        return format_contribution(value)
    return f"{'+' if value > 0 else ''}{format_number(value)}"


MARKER = "≠"


def mark_first_difference(diagram: ModelMap, report: DiagnosisReport | None) -> ModelMap:
    """Return the map with the parts marked that compute the first differing value; unchanged if there is none."""
    if report is None or report.first is None or not (indices := parts_for_tap(report.first, diagram.parts)):
        return diagram
    hover_text = _("≠ your module parts from the reference here, at {tap}", tap=report.first)
    map_parts = [
        replace(map_part, hover_text=f"{map_part.hover_text}\n{hover_text}") if index in indices else map_part
        for index, map_part in enumerate(diagram.parts)
    ]
    sheets = tuple(
        replace(sheet, labels=[*sheet.labels, *(corner_marker(map_parts[index], number) for index in indices)])
        for number, sheet in enumerate(diagram.sheets)
    )
    alt = _("{alt} Your module parts from the reference at {tap}.", alt=diagram.alt, tap=report.first)
    return replace(diagram, parts=tuple(map_parts), sheets=sheets, alt=alt)


def corner_marker(map_part: MapPart, sheet_index: int) -> MapLabel:
    """Return a marker at the upper right corner of a part."""
    _left, upper, right, _lower = map_part.boxes[sheet_index]
    return MapLabel(right, upper, MARKER, "apart")


def parts_for_tap(tap: str, map_parts: Sequence[MapPart]) -> list[int]:
    """Return the indices of the parts that compute a value: as their result, or else as a step to it."""
    block = tap.split(".attn.")[0].split(".ffn.")[0]
    result = f"{block}.attn.z" if ".attn." in tap else f"{block}.ffn.out"
    for name in (tap.replace(".k_rot", ".q_rot"), result):
        if indices := [index for index, map_part in enumerate(map_parts) if map_part.tap == name]:
            return indices
    return []


SINGLE_RUN_LABELS = ("number", "sum", "heading")  # kinds of labels that do not hold for a difference
NEXT_TOKEN = "next_token"


def share_map_scale(diagram: ModelMap, other: ModelMap) -> ModelMap:
    """Return the map with a colour scale for both runs."""
    return _rescale_colours(diagram, max(diagram.largest, other.largest))


def map_difference(first: ModelMap, second: ModelMap, comparison: Comparison, title: str) -> ModelMap:
    """Return the map of A − B: differences of contributions, with both runs' numbers in the hover texts.

    Lines are A's.

    Raises:
        NoDifferenceError: the models have different components.
    """
    parts_a, parts_b = (
        [map_part for map_part in diagram.parts if map_part.kind != NEXT_TOKEN] for diagram in (first, second)
    )
    if [(map_part.kind, map_part.selects) for map_part in parts_a] != [
        (map_part.kind, map_part.selects) for map_part in parts_b
    ]:
        raise NoDifferenceError(_("A and B are models of different parts: look at their maps in turn."))
    differences = [_subtract(part_a, part_b) for part_a, part_b in zip(parts_a, parts_b, strict=True)]
    differences += [replace(map_part, value=None) for map_part in first.parts if map_part.kind == NEXT_TOKEN]
    largest = max((abs(map_part.value) for map_part in differences if map_part.value is not None), default=0.0)
    alt = _("{title}. The largest difference is {most}.", title=difference_title(title), most=format_signed(largest))
    sheets = (
        replace(sheet, labels=[word for word in sheet.labels if word.kind not in SINGLE_RUN_LABELS])
        for sheet in first.sheets
    )
    return _rescale_colours(replace(first, parts=differences, sheets=tuple(sheets), alt=alt), largest or 1.0)


def _subtract(part_a: MapPart, part_b: MapPart) -> MapPart:
    both_texts = _("A: {a}\nB: {b}", a=part_a.hover_text, b=part_b.hover_text)
    if part_a.value is None or part_b.value is None:
        return replace(part_a, hover_text=both_texts)
    difference = part_a.value - part_b.value
    return replace(
        part_a, hover_text=_("A − B: {less}\n{both}", less=format_signed(difference), both=both_texts), value=difference
    )


def _rescale_colours(diagram: ModelMap, largest: float) -> ModelMap:
    """Return the map with colours that end at `largest`, and the labels of the colour scale adapted."""

    def rescale_sheet(arrangement: MapArrangement) -> MapArrangement:
        ends = iter((-largest, 0.0, largest))
        labels = [
            replace(map_label, text=format_signed(next(ends))) if map_label.kind == "tick" else map_label
            for map_label in arrangement.labels
        ]
        return replace(arrangement, labels=labels)

    return replace(diagram, largest=largest, sheets=tuple(map(rescale_sheet, diagram.sheets)))


MAPS = TwoRunRenderer(share_map_scale, map_difference)


LEGEND_ROW = 19


def make_diagram(trace: Trace, selection: Selection, overview: ForwardPassOverview, score: str, alt: str) -> ModelMap:
    """Return the map of the model in both arrangements, with this run's numbers at the query.

    Args:
        score: name of the explained logit.
        alt: alternative text, in a sentence.
    """
    all_parts = MapPartBuilder(trace, selection, overview, score)
    map_parts, (landscape, portrait) = tuple(all_parts), all_parts.layouts
    largest = (
        float(max(np.abs(overview.attribution.heads).max(), np.abs(overview.attribution.feed_forward).max())) or 1.0
    )
    contribution_label = _("adds to the lead") if selection.rival else _("adds to the logit")
    kinds = {map_part.kind for map_part in map_parts}

    def make_sheet(plan: MapLayout, labels: Iterable[MapLabel], max_chars: int) -> MapArrangement:
        discs = [kind for kind in DISCS if kind in kinds]
        legend = tuple((kind, legend_disc(plan, row)) for row, kind in enumerate(discs))
        all_labels = (
            *next_token_labels(plan, all_parts.next_tokens, max_chars),
            *labels,
            *legend_labels(plan, legend, largest, contribution_label),
        )
        lines = (*residual_lines(plan, overview), *stream_read_lines(plan), *rope_lines(plan))
        return MapArrangement(plan.size, lines, all_labels, plan.labelled_kinds, legend, plan.scale)

    sheets = (
        make_sheet(landscape, landscape_labels(landscape, overview, contribution_label), max_chars=7),
        make_sheet(portrait, portrait_labels(portrait, overview), max_chars=24),
    )
    return mark_first_difference(ModelMap(map_parts, sheets, largest, alt), trace.diagnosis)


def legend_disc(plan: MapLayout, row: int) -> Box:
    """Return the edges of the disc in a row of the legend."""
    x, y = plan.legend
    return x - 7, y + row * LEGEND_ROW - 7, x + 7, y + row * LEGEND_ROW + 7
