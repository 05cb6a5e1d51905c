"""The map of a model as data: positions, labels, numbers, and what a click on each part selects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from explorer.views.overview.map_layout import Box


@dataclass(frozen=True)
class MapPart:
    """A part of the map: a component, an operation or a next token.

    Attributes:
        kind: "head", "norm", …; parts of a kind look alike.
        boxes: its edges on each sheet.
        hover_text: lines of plain text.
        selects: what a click on it selects, by the field of the selection; with "view" among them a tab opens.
        value: the number that its colour shows: its contribution to the logit or, for a next token, its
            probability.
        label: on it, lines of plain text.
    """

    kind: str
    boxes: tuple[Box, ...]
    hover_text: str
    selects: Mapping[str, str | int]
    value: float | None = None
    label: str = ""


@dataclass(frozen=True)
class MapLine:
    """A line on the map, along which a vector flows from one part to another.

    Attributes:
        kind: its source: "attention", "feed_forward", "embedding", or "residual" for the stream and its
            readers.
        corners: the x and y of each in turn.
        width: of the line.
        arrow: whether its end has an arrowhead.
    """

    kind: str
    corners: tuple[float, ...]
    width: float
    arrow: bool = False


@dataclass(frozen=True)
class MapLabel:
    """A text on the map.

    Attributes:
        x, y: its position; y is the middle of its height.
        text: plain.
        kind: "title", "token", "name" or "number"; "heading" of numbers, "sum" for contributions, "tick" for
            the ends of the colour scale, "apart" for the marker of the first difference.
        side: the part of the text that is at x: its "start", "middle" or "end".
    """

    x: float
    y: float
    text: str
    kind: str = "name"
    side: str = "middle"


@dataclass(frozen=True)
class MapArrangement:
    """One arrangement of the map, for wide or for narrow pages.

    Attributes:
        size: its width and height.
        lines: from the lowest to the uppermost; all are below the parts.
        labels: those besides the ones on parts.
        labelled_kinds: the kinds of parts that have room for their label.
        legend: for each kind of disc on the map, the kind and the edges of one.
        scale: edges of the colour bar.
    """

    size: tuple[float, float]
    lines: Sequence[MapLine]
    labels: Sequence[MapLabel]
    labelled_kinds: Sequence[str]
    legend: Sequence[tuple[str, Box]]
    scale: Box


@dataclass(frozen=True)
class Diagram:
    """The map of a model: its parts, and their arrangements for wide and for narrow pages.

    Attributes:
        parts: in the order of the data flow.
        sheets: the arrangements for a wide and for a narrow page.
        largest: the value at the end of the colour scale, which is symmetric about 0.
        alt: alternative text, in a sentence.
    """

    parts: Sequence[MapPart]
    sheets: tuple[MapArrangement, MapArrangement]
    largest: float
    alt: str
