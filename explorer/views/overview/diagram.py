"""The map of a model as data: what stands where, what it shows and says, and what a click on it selects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from explorer.views.overview.plan import Box


@dataclass(frozen=True)
class Part:
    """A part of the model.

    Attributes:
        kind: "head", "norm", …; parts of a kind look alike.
        boxes: its edges on each sheet.
        told: about it, lines of plain text.
        selects: what a click on it selects, by the field of the selection; with "view" among them a tab opens.
        value: what is drawn of it: what it adds to the logit or, of a next token, its probability.
        written: on it, lines of plain text.
    """

    kind: str
    boxes: tuple[Box, ...]
    told: str
    selects: Mapping[str, str | int]
    value: float | None = None
    written: str = ""


@dataclass(frozen=True)
class Line:
    """A vector's way.

    Attributes:
        kind: whose it is: "attention", "feed_forward", "embedding", or "residual" of the stream and what is read of it.
        corners: the x and y of each in turn.
        width: of the line.
        arrow: whether its end has a head.
    """

    kind: str
    corners: tuple[float, ...]
    width: float
    arrow: bool = False


@dataclass(frozen=True)
class Word:
    """A text.

    Attributes:
        x, y: where it is, in the middle of its height.
        text: plain.
        kind: "title", "token" or "name" and "number" of something; "heading" of numbers, "sum" for what is
            added, "tick" for ends of the colours, "apart" for the sign at what differs.
        side: what of the text is at x: its "start", "middle" or "end".
    """

    x: float
    y: float
    text: str
    kind: str = "name"
    side: str = "middle"


@dataclass(frozen=True)
class Sheet:
    """One arrangement of the map.

    Attributes:
        size: its width and height.
        lines: from the lowest to the uppermost; all are below the parts.
        words: besides those on parts.
        written: the kinds of parts that have room for what is written on them.
        legend: a kind of disc and the edges of one, for each kind that there is.
        scale: edges of the bar of colours.
    """

    size: tuple[float, float]
    lines: Sequence[Line]
    words: Sequence[Word]
    written: Sequence[str]
    legend: Sequence[tuple[str, Box]]
    scale: Box


@dataclass(frozen=True)
class Diagram:
    """The whole map.

    Attributes:
        parts: in the order of the data's way.
        sheets: the arrangement for a wide page, and that for a narrow one.
        largest: what has the last of its colours; the first has what is as far below 0.
        alt: what is seen, in a sentence.
    """

    parts: Sequence[Part]
    sheets: tuple[Sheet, Sheet]
    largest: float
    alt: str
