"""The map's layouts: positions of a model's parts along the data flow and across it.

On a wide page data flows left to right, attention above the stream and feed-forward below. On a phone it flows top to
bottom, attention left of the stream and feed-forward right; parts are large enough for fingers, and the figure grows
with the number of layers.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from explorer.architecture.residual_stream import (
    block_layout,
    normalised_sublayer,
    norms_on_residual_stream,
    output_norm,
    sublayers_reading,
)
from explorer.translations import _
from model.config import ModelConfig

Box = tuple[float, float, float, float]  # left, upper, right and lower edge
Span = tuple[float, float]  # start and end


@dataclass(frozen=True)
class MapLayout(ABC):
    """Positions of the parts of a model, in pixels of a figure that is scaled up on wider screens.

    They are coordinates along the data flow and across it, attention before the stream and feed-forward after
    it. `to_xy` maps them to x and y, and so decides the direction of the data flow. Some layouts compute a setting
    from the model's config, as a property.

    Attributes:
        config: of the model.
        num_next_tokens: the length of the list of next tokens.
    """

    config: ModelConfig
    num_next_tokens: int = 0

    # Along
    token: ClassVar[Span]  # and the position's vector
    position_added: ClassVar[float]
    start: ClassVar[float]  # of the blocks
    after_blocks: ClassVar[Mapping[str, float]]  # offsets from the end of the blocks
    # Across
    rotary: ClassVar[float]  # where the angles of the positions run
    heads: ClassVar[Span]
    o_proj: ClassVar[Span]
    attention_norm: ClassVar[float]
    attention_output_norm: ClassVar[float]
    stream: ClassVar[float]
    feed_forward_norm: ClassVar[float]  # on either way
    feed_forward: ClassVar[Span]
    beside_stream: ClassVar[Span]  # the token
    position: ClassVar[Span]
    lm_head: ClassVar[Span]
    # Along a block, as fractions of its length
    block_length: ClassVar[float]
    offsets: ClassVar[Mapping[str, float]]  # at which vectors are read, added and normalised
    spans: ClassVar[Mapping[str, Span]]  # of "heads", "o_proj" and "feed_forward"
    head_columns: ClassVar[int]  # of equal length

    size: ClassVar[tuple[float, float]]  # width and height of the map
    disc_width: ClassVar[float]  # of norms, additions and rotations
    max_line_width: ClassVar[float]  # of the vector with the largest norm
    labelled_kinds: ClassVar[tuple[str, ...]]  # the kinds of parts that have room for their label
    legend: ClassVar[tuple[float, float]]  # the centre of its first disc
    scale: ClassVar[Box]  # the edges of the colour bar

    @abstractmethod
    def to_xy(self, along: float, across: float) -> tuple[float, float]:
        """Return the x and y of a point."""

    @abstractmethod
    def next_token(self, row: int) -> Box:
        """Return the box of one of the next tokens."""

    @property
    def blocks_end(self) -> float:
        """The offset along of the end of the blocks."""
        return self.layer_offset(self.config.num_layers, 0)

    def offset_after_blocks(self, name: str) -> float:
        """Return the offset along of "final_norm", "lm_head", "lm_head_end" or "list", which follow the blocks."""
        return self.blocks_end + self.after_blocks[name]

    def layer_offset(self, layer: int, share: float) -> float:
        """Return the coordinate along the stream of a share of a layer's block."""
        return self.start + (layer + share) * self.block_length

    def offset(self, layer: int, name: str) -> float:
        """Return the coordinate along the stream of a named point of a block."""
        return self.layer_offset(layer, self.offsets[name])

    def span(self, layer: int, name: str) -> Span:
        """Return the first and last coordinate along the stream of a named part of a block."""
        first, last = self.spans[name]
        return self.layer_offset(layer, first), self.layer_offset(layer, last)

    def heads_centre(self, layer: int) -> float:
        """Return the offset along of the middle of a layer's heads."""
        return sum(self.span(layer, "heads")) / 2

    def box(self, along: Span, across: Span) -> Box:
        """Return the box (x0, y0, x1, y1) of two spans."""
        return *self.to_xy(along[0], across[0]), *self.to_xy(along[1], across[1])

    def disc(self, along: float, across: float) -> Box:
        """Return the edges of a disc with this centre."""
        radius = self.disc_width / 2
        return self.box((along - radius, along + radius), (across - radius, across + radius))

    def xy_coordinates(self, *points: tuple[float, float]) -> tuple[float, ...]:
        """Return the x and y in turn of points given along and across."""
        return tuple(coordinate for point in points for coordinate in self.to_xy(*point))

    def norm(self, layer: int, name: str) -> tuple[float, float]:
        """Return the centre of a norm, along and across.

        On the stream, on the path into its sublayer or on the path out of it; for a norm that both sublayers
        read, before their paths diverge.
        """
        if name in norms_on_residual_stream(self.config):
            return self.offset(layer, name), self.stream
        if sublayer := normalised_sublayer(self.config, name):
            across = {"attn": self.attention_output_norm, "ffn": self.feed_forward_norm}[sublayer]
            return self.offset(layer, f"add_{sublayer}"), across
        first, *others = sublayers_reading(self.config, name)
        across = {"attn": self.attention_norm, "ffn": self.feed_forward_norm}[first]
        return self.offset(layer, name if others else f"read_{first}"), across

    def sum_offset(self, layer: int, sublayer: str) -> float:
        """Return the offset along of a sublayer's bar: at its addition, or beside it if both share one."""
        along, is_parallel = self.offset(layer, f"add_{sublayer}"), len(block_layout(self.config).sums) == 1
        return along + is_parallel * {"attn": -0.1, "ffn": 0.1}[sublayer] * self.block_length

    def head(self, layer: int, head: int) -> Box:
        """Return the box of a head's cell; heads are in reading order."""
        columns = self.head_columns
        rows = self.config.num_heads // columns
        left, upper, right, lower = self.box(self.span(layer, "heads"), self.heads)
        row, column = divmod(head, columns)
        width, height = (right - left) / columns, (lower - upper) / rows
        return left + column * width, upper + row * height, left + (column + 1) * width, upper + (row + 1) * height

    def change_offsets(self) -> list[float]:
        """Return the offsets along of the points at which the stream's vector changes.

        These are the additions and, in a post-norm model, the norms.
        """
        sums = block_layout(self.config).sums
        names = [f"add_{sums[name][0]}" if name in sums else name for name in block_layout(self.config).stream[1:]]
        return [self.offset(layer, name) for layer in range(self.config.num_layers) for name in names]


LANDSCAPE_WIDTH, LANDSCAPE_HEIGHT = 900, 416
LANDSCAPE_LEFT, LANDSCAPE_RIGHT = 118, 690  # of the blocks
LANDSCAPE_STREAM = 266
# Offsets from the upper edge.
LANDSCAPE_TITLES, LANDSCAPE_ATTENTION_ADDS, LANDSCAPE_ATTENTION_WRITES = 12, 32, 48
LANDSCAPE_STREAM_LENGTHS = 238
LANDSCAPE_FEED_FORWARD_ADDS, LANDSCAPE_FEED_FORWARD_WRITES = 390, 406
LANDSCAPE_NEXT_TOKENS, LANDSCAPE_ROW = (794, 896), 24  # the list's edges, and the distance of its rows
LANDSCAPE_OFFSETS = {  # by norm placement
    "pre": {"read_attn": 0.12, "add_attn": 0.48, "read_ffn": 0.63, "add_ffn": 0.88},
    "parallel": {"read_attn": 0.2, "add_attn": 0.65, "read_ffn": 0.2, "add_ffn": 0.65},
    "shared": {"attn_norm": 0.14, "read_attn": 0.34, "add_attn": 0.65, "read_ffn": 0.34, "add_ffn": 0.65},
    **dict.fromkeys(("output", "sandwich"), {"read_attn": 0.12, "add_attn": 0.48, "read_ffn": 0.63, "add_ffn": 0.88}),
    "post": {
        "read_attn": 0.08,
        "add_attn": 0.36,
        "attn_norm": 0.53,
        "read_ffn": 0.64,
        "add_ffn": 0.79,
        "ffn_norm": 0.95,
    },
}


class LandscapeLayout(MapLayout):
    """Layout of a desktop screen's width, whatever the number of layers."""

    token, position_added, start = (8, 88), 103, LANDSCAPE_LEFT
    after_blocks = {
        "final_norm": 15,
        "lm_head": 32,
        "lm_head_end": 84,
        "list": LANDSCAPE_NEXT_TOKENS[0] - LANDSCAPE_RIGHT,
    }
    rotary, heads, o_proj, attention_norm, attention_output_norm = 67, (84, 172), (192, 216), 204, 234
    stream, feed_forward_norm, feed_forward = LANDSCAPE_STREAM, 318, (342, 376)
    beside_stream = lm_head = (LANDSCAPE_STREAM - 20, LANDSCAPE_STREAM + 20)
    position = (302, 330)
    size, legend, scale = (LANDSCAPE_WIDTH, LANDSCAPE_HEIGHT), (732, 16), (722, 392, 896, 400)

    def to_xy(self, along: float, across: float) -> tuple[float, float]:
        return along, across

    @cached_property
    def block_length(self) -> float:
        return (LANDSCAPE_RIGHT - LANDSCAPE_LEFT) / self.config.num_layers

    @cached_property
    def offsets(self) -> Mapping[str, float]:
        return LANDSCAPE_OFFSETS[self.config.norm_placement]

    @cached_property
    def spans(self) -> Mapping[str, Span]:
        centre = self.offsets["add_attn"]
        return {"heads": (0.05, 0.95), "o_proj": (centre - 0.19, centre + 0.19), "feed_forward": (0.05, 0.95)}

    @property
    def has_room_for_labels(self) -> bool:
        """True if a block is wide enough for labels."""
        return self.block_length >= 80

    @property
    def has_room_for_numbers(self) -> bool:
        """True if a block is wide enough for a number."""
        return self.block_length >= 46

    def title(self, layer: int) -> str:
        return _("layer {layer}", layer=layer) if self.has_room_for_labels else str(layer)

    @property
    def disc_width(self) -> float:
        return min(16, 0.16 * self.block_length)

    @property
    def max_line_width(self) -> float:
        return min(26, 0.28 * self.block_length)

    @cached_property
    def head_columns(self) -> int:
        """The number of columns of heads with which cells are closest to square."""
        heads, shape = self.config.num_heads, 0.9 * self.block_length / (self.heads[1] - self.heads[0])
        divisors = [columns for columns in range(1, heads + 1) if heads % columns == 0]
        return min(divisors, key=lambda columns: abs(math.log(columns**2 / (heads * shape))))

    @property
    def labelled_kinds(self) -> tuple[str, ...]:
        left, upper, right, lower = self.head(0, 0)
        head = ("head",) if min(right - left, lower - upper) >= 12 else ()
        sublayers = ("o_proj", "feed_forward") if self.has_room_for_labels else ()  # the row has its name at the left
        return "token", "position", *head, *sublayers, "lm_head"

    def next_token(self, row: int) -> Box:
        middle = LANDSCAPE_STREAM + LANDSCAPE_ROW * (row - (self.num_next_tokens - 1) / 2)
        return (
            LANDSCAPE_NEXT_TOKENS[0],
            middle - LANDSCAPE_ROW / 2 + 1,
            LANDSCAPE_NEXT_TOKENS[1],
            middle + LANDSCAPE_ROW / 2 - 1,
        )


PORTRAIT_WIDTH = 350  # at most a phone's width, so that labels are not scaled down
PORTRAIT_LEFT, PORTRAIT_RIGHT = 4, PORTRAIT_WIDTH - 4
PORTRAIT_STREAM = 225
PORTRAIT_ATTENTION = 151  # where its name and, unless they are moved, its heads end
# From a block's upper edge: its title, its heads, and how high all are at least.
PORTRAIT_TITLE, PORTRAIT_HEADS, PORTRAIT_MIN_HEADS_HEIGHT = 8, 20, 88
PORTRAIT_MIN_HEAD_SIZE = (24, 26)  # width and height of a head's cell
PORTRAIT_LABELS, PORTRAIT_LINE = 10, 13  # below the heads: offset of the first label, and the line height
PORTRAIT_ROW = 46  # of the list of next tokens
# From a block's upper edge.
PORTRAIT_OFFSETS = {
    "pre": {"read_attn": 34, "add_attn": 74, "read_ffn": 100, "add_ffn": 128},
    "parallel": {"read_attn": 64, "add_attn": 98, "read_ffn": 64, "add_ffn": 98},
    **dict.fromkeys(("output", "sandwich"), {"read_attn": 34, "add_attn": 74, "read_ffn": 100, "add_ffn": 128}),
    "shared": {"attn_norm": 46, "read_attn": 68, "add_attn": 98, "read_ffn": 68, "add_ffn": 98},
    "post": {"read_attn": 34, "add_attn": 74, "attn_norm": 102, "read_ffn": 124, "add_ffn": 150, "ffn_norm": 176},
}
PORTRAIT_FEED_FORWARD_SPANS = {
    **dict.fromkeys(("pre", "output", "sandwich"), (86, 142)),
    **dict.fromkeys(("parallel", "shared"), (52, 112)),
    "post": (110, 164),
}
PORTRAIT_MIN_BLOCK_LENGTHS = {**dict.fromkeys(PORTRAIT_OFFSETS, 148), "post": 192}  # minimum length by norm placement
PORTRAIT_OUTPUT_NORM_WIDTH = 20  # the room that a norm takes between attention and the stream


class PortraitLayout(MapLayout):
    """Layout of a phone screen's width, whatever the number of layers."""

    token, position_added, start = (4, 48), 64, 84
    after_blocks = {"final_norm": 28, "lm_head": 50, "lm_head_end": 94, "list": 126}
    rotary, attention_norm, attention_output_norm = 13, 180, 197
    stream, feed_forward_norm, feed_forward = PORTRAIT_STREAM, 251, (269, PORTRAIT_RIGHT)
    beside_stream, position, lm_head = (150, 252), (262, PORTRAIT_RIGHT), (PORTRAIT_LEFT, PORTRAIT_RIGHT)
    disc_width, max_line_width, legend = 22, 22, (13, 14)
    labelled_kinds = ("token", "position", "head", "o_proj", "feed_forward", "lm_head")

    def to_xy(self, along: float, across: float) -> tuple[float, float]:
        return across, along

    @property
    def size(self) -> tuple[float, float]:
        return PORTRAIT_WIDTH, self.scale[3] + 18

    @property
    def heads(self) -> Span:
        return (31 if self.config.position == "rope" else PORTRAIT_LEFT), PORTRAIT_ATTENTION - self.output_norm_offset

    @property
    def o_proj(self) -> Span:
        return 159 - self.output_norm_offset, 201 - self.output_norm_offset

    @property
    def output_norm_offset(self) -> float:
        """The extra distance of attention from the stream if a norm is between them; else 0."""
        return 0 if output_norm(self.config, 0, "attn") is None else PORTRAIT_OUTPUT_NORM_WIDTH

    @cached_property
    def head_columns(self) -> int:
        """The number of columns of heads with which cells are closest to square and wide enough."""
        heads, width = self.config.num_heads, self.heads[1] - self.heads[0]
        max_columns = max(1, int(width / PORTRAIT_MIN_HEAD_SIZE[0]))
        divisors = [columns for columns in range(1, max_columns + 1) if heads % columns == 0]
        return min(
            divisors,
            key=lambda columns: abs(math.log(width / columns * (heads / columns) / self.heads_height(columns))),
        )

    def heads_height(self, columns: int) -> float:
        """Return the height of all heads of a block in this many columns."""
        return max(PORTRAIT_MIN_HEADS_HEIGHT, PORTRAIT_MIN_HEAD_SIZE[1] * self.config.num_heads / columns)

    @property
    def heads_end(self) -> float:
        """The end of the heads, from a block's upper edge."""
        return PORTRAIT_HEADS + self.heads_height(self.head_columns)

    @cached_property
    def block_length(self) -> float:
        return max(
            PORTRAIT_MIN_BLOCK_LENGTHS[self.config.norm_placement], self.heads_end + PORTRAIT_LABELS + 2 * PORTRAIT_LINE
        )

    @cached_property
    def offsets(self) -> Mapping[str, float]:
        return {
            name: offset / self.block_length for name, offset in PORTRAIT_OFFSETS[self.config.norm_placement].items()
        }

    @cached_property
    def spans(self) -> Mapping[str, Span]:
        centre, feed_forward = (
            table[self.config.norm_placement] for table in (PORTRAIT_OFFSETS, PORTRAIT_FEED_FORWARD_SPANS)
        )
        o_proj = centre["add_attn"] - 22, centre["add_attn"] + 22
        spans = {"heads": (PORTRAIT_HEADS, self.heads_end), "o_proj": o_proj, "feed_forward": feed_forward}
        return {name: (first / self.block_length, last / self.block_length) for name, (first, last) in spans.items()}

    def next_token(self, row: int) -> Box:
        upper = self.offset_after_blocks("list") + PORTRAIT_ROW * row
        return PORTRAIT_LEFT, upper, PORTRAIT_RIGHT, upper + PORTRAIT_ROW - 2

    @property
    def scale(self) -> Box:
        upper = self.offset_after_blocks("list") + PORTRAIT_ROW * self.num_next_tokens + 24
        return PORTRAIT_LEFT, upper, PORTRAIT_RIGHT, upper + 8
