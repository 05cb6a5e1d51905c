"""On the map, where the module that the app was started with parts from the reference."""

from collections.abc import Sequence
from dataclasses import replace

from explorer.language import _
from explorer.tracing.diagnosis import Report
from explorer.views.overview.diagram import Diagram, Part, Word

MARK = "≠"
ROTATED = "attn.q_rot", "attn.k_rot"
OF_HEADS = "attn.q", "attn.k", "attn.v", *ROTATED, "attn.scores", "attn.pattern", "attn.z"


def with_parting(diagram: Diagram, report: Report | None) -> Diagram:
    """The map with the parts marked that give the first value that differs; as it is where none does."""
    if report is None or report.first is None or not (places := places_of(report.first, diagram.parts)):
        return diagram
    told = _("≠ your module parts from the reference here, at {tap}", tap=report.first)
    parts = [
        replace(part, told=f"{part.told}\n{told}") if place in places else part
        for place, part in enumerate(diagram.parts)
    ]
    sheets = tuple(
        replace(sheet, words=[*sheet.words, *(corner(parts[place], number) for place in places)])
        for number, sheet in enumerate(diagram.sheets)
    )
    alt = _("{alt} Your module parts from the reference at {tap}.", alt=diagram.alt, tap=report.first)
    return replace(diagram, parts=tuple(parts), sheets=sheets, alt=alt)


def corner(part: Part, sheet: int) -> Word:
    """A sign at the upper right of a part."""
    _left, upper, right, _lower = part.boxes[sheet]
    return Word(right, upper, MARK, "apart")


def places_of(tap: str, parts: Sequence[Part]) -> list[int]:
    """Which parts give a value."""
    if not tap.startswith("blocks."):
        kind = {"embed": "token", "final_norm": "norm", "logits": "lm_head"}.get(tap)
        found = [place for place, part in enumerate(parts) if part.kind == kind]
        return found[-1:] if tap == "final_norm" else found
    number, name = tap.removeprefix("blocks.").split(".", 1)

    def those(kind: str) -> list[int]:
        return [
            place for place, part in enumerate(parts) if part.kind == kind and part.selects.get("layer") == int(number)
        ]

    if name in ROTATED and those("rotation"):
        return those("rotation")
    if name in OF_HEADS:
        return those("head")
    if name == "attn.out":
        return those("o_proj")
    if name.startswith("ffn."):
        return those("feed_forward")
    order = {
        "attn_norm": ("norm", 0),
        "ffn_norm": ("norm", 1),
        "resid_mid": ("addition", -2),
        "resid_post": ("addition", -1),
    }
    kind, place = order.get(name, ("", 0))
    return those(kind)[place:][:1] if kind else []
