"""The layout of the map for a phone: data flows top to bottom, attention left of the stream, feed-forward right.

Parts are large enough for fingers, and the figure grows with the number of layers.
"""

import math
from collections.abc import Mapping
from functools import cached_property

from explorer.architecture.residual_stream import output_norm
from explorer.views.overview.map_layout import Box, MapLayout, Span

WIDTH = 350  # at most a phone's width, so that labels are not scaled down
LEFT, RIGHT = 4, WIDTH - 4
STREAM = 225
ATTENTION = 151  # where its name and, unless they are moved, its heads end
TITLE, HEADS, MIN_HEADS_HEIGHT = (
    8,
    20,
    88,
)  # from a block's upper edge: its title, its heads, and how high all are at least
MIN_HEAD_SIZE = (24, 26)  # width and height of a head's cell
LABELS, LINE = 10, 13  # below the heads: offset of the first label, and the line height
ROW = 46  # of the list of next tokens
# From a block's upper edge.
OFFSETS = {
    "pre": {"read_attn": 34, "add_attn": 74, "read_ffn": 100, "add_ffn": 128},
    "parallel": {"read_attn": 64, "add_attn": 98, "read_ffn": 64, "add_ffn": 98},
    **dict.fromkeys(("output", "sandwich"), {"read_attn": 34, "add_attn": 74, "read_ffn": 100, "add_ffn": 128}),
    "shared": {"attn_norm": 46, "read_attn": 68, "add_attn": 98, "read_ffn": 68, "add_ffn": 98},
    "post": {"read_attn": 34, "add_attn": 74, "attn_norm": 102, "read_ffn": 124, "add_ffn": 150, "ffn_norm": 176},
}
FEED_FORWARD_SPANS = {
    **dict.fromkeys(("pre", "output", "sandwich"), (86, 142)),
    **dict.fromkeys(("parallel", "shared"), (52, 112)),
    "post": (110, 164),
}
MIN_BLOCK_LENGTHS = {**dict.fromkeys(OFFSETS, 148), "post": 192}  # minimum length by norm placement
OUTPUT_NORM_WIDTH = 20  # the room that a norm takes between attention and the stream


class PortraitLayout(MapLayout):
    """Layout of a phone screen's width, whatever the number of layers."""

    token, position_added, start = (4, 48), 64, 84
    after_blocks = {"final_norm": 28, "lm_head": 50, "lm_head_end": 94, "list": 126}
    rotary, attention_norm, attention_output_norm = 13, 180, 197
    stream, feed_forward_norm, feed_forward = STREAM, 251, (269, RIGHT)
    beside_stream, position, lm_head = (150, 252), (262, RIGHT), (LEFT, RIGHT)
    disc_width, max_line_width, legend = 22, 22, (13, 14)
    labelled_kinds = ("token", "position", "head", "o_proj", "feed_forward", "lm_head")

    def to_xy(self, along: float, across: float) -> tuple[float, float]:
        return across, along

    @property
    def size(self) -> tuple[float, float]:
        return WIDTH, self.scale[3] + 18

    @property
    def heads(self) -> Span:
        return (31 if self.config.position == "rope" else LEFT), ATTENTION - self.output_norm_offset

    @property
    def o_proj(self) -> Span:
        return 159 - self.output_norm_offset, 201 - self.output_norm_offset

    @property
    def output_norm_offset(self) -> float:
        """The extra distance of attention from the stream if a norm is between them; else 0."""
        return 0 if output_norm(self.config, 0, "attn") is None else OUTPUT_NORM_WIDTH

    @cached_property
    def head_columns(self) -> int:
        """The number of columns of heads with which cells are closest to square and wide enough."""
        heads, width = self.config.num_heads, self.heads[1] - self.heads[0]
        max_columns = max(1, int(width / MIN_HEAD_SIZE[0]))
        divisors = [columns for columns in range(1, max_columns + 1) if heads % columns == 0]
        return min(
            divisors,
            key=lambda columns: abs(math.log(width / columns * (heads / columns) / self.heads_height(columns))),
        )

    def heads_height(self, columns: int) -> float:
        """Return the height of all heads of a block in this many columns."""
        return max(MIN_HEADS_HEIGHT, MIN_HEAD_SIZE[1] * self.config.num_heads / columns)

    @property
    def heads_end(self) -> float:
        """The end of the heads, from a block's upper edge."""
        return HEADS + self.heads_height(self.head_columns)

    @cached_property
    def block_length(self) -> float:
        return max(MIN_BLOCK_LENGTHS[self.config.norm_placement], self.heads_end + LABELS + 2 * LINE)

    @cached_property
    def offsets(self) -> Mapping[str, float]:
        return {name: offset / self.block_length for name, offset in OFFSETS[self.config.norm_placement].items()}

    @cached_property
    def spans(self) -> Mapping[str, Span]:
        centre, feed_forward = (table[self.config.norm_placement] for table in (OFFSETS, FEED_FORWARD_SPANS))
        o_proj = centre["add_attn"] - 22, centre["add_attn"] + 22
        spans = {"heads": (HEADS, self.heads_end), "o_proj": o_proj, "feed_forward": feed_forward}
        return {name: (first / self.block_length, last / self.block_length) for name, (first, last) in spans.items()}

    def next_token(self, row: int) -> Box:
        upper = self.offset_after_blocks("list") + ROW * row
        return LEFT, upper, RIGHT, upper + ROW - 2

    @property
    def scale(self) -> Box:
        upper = self.offset_after_blocks("list") + ROW * self.num_next_tokens + 24
        return LEFT, upper, RIGHT, upper + 8
