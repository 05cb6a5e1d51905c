"""Marks the map where the user's own module first differs from the reference."""

from collections.abc import Sequence
from dataclasses import replace

from explorer.tracing.diagnosis_report import DiagnosisReport
from explorer.translations import _
from explorer.views.overview.map_data import Diagram, MapLabel, MapPart

MARKER = "≠"
ROTATED_TAPS = "attn.q_rot", "attn.k_rot"
HEAD_TAPS = "attn.q", "attn.k", "attn.v", *ROTATED_TAPS, "attn.scores", "attn.pattern", "attn.z"


def mark_first_difference(diagram: Diagram, report: DiagnosisReport | None) -> Diagram:
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
    """Return the indices of the parts that compute a value."""
    if not tap.startswith("blocks."):
        kind = {"embed": "token", "final_norm": "norm", "logits": "lm_head"}.get(tap)
        indices = [index for index, map_part in enumerate(map_parts) if map_part.kind == kind]
        return indices[-1:] if tap == "final_norm" else indices
    number, name = tap.removeprefix("blocks.").split(".", 1)

    def part_indices(kind: str) -> list[int]:
        return [
            index
            for index, map_part in enumerate(map_parts)
            if map_part.kind == kind and map_part.selects.get("layer") == int(number)
        ]

    if name in ROTATED_TAPS and part_indices("rotation"):
        return part_indices("rotation")
    if name in HEAD_TAPS:
        return part_indices("head")
    if name == "attn.out":
        return part_indices("o_proj")
    if name.startswith("ffn."):
        return part_indices("feed_forward")
    norms_and_sums = {
        "attn_norm": ("norm", 0),
        "ffn_norm": ("norm", 1),
        "resid_mid": ("addition", -2),
        "resid_post": ("addition", -1),
    }
    kind, index = norms_and_sums.get(name, ("", 0))
    return part_indices(kind)[index:][:1] if kind else []
