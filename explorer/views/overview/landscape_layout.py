"""The layout of the map for a wide page: data flows left to right, attention above the stream, feed-forward below."""

import math
from collections.abc import Mapping
from functools import cached_property

from explorer.translations import _
from explorer.views.overview.map_layout import Box, MapLayout, Span

WIDTH, HEIGHT = 900, 416
LEFT, RIGHT = 118, 690  # of the blocks
STREAM = 266
TITLES, ATTENTION_ADDS, ATTENTION_WRITES, STREAM_LENGTHS = 12, 32, 48, 238  # offsets from the upper edge
FEED_FORWARD_ADDS, FEED_FORWARD_WRITES = 390, 406
NEXT_TOKENS, ROW = (794, 896), 24  # the list's edges, and the distance of its rows
OFFSETS = {  # by norm placement
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

    token, position_added, start = (8, 88), 103, LEFT
    after_blocks = {"final_norm": 15, "lm_head": 32, "lm_head_end": 84, "list": NEXT_TOKENS[0] - RIGHT}
    rotary, heads, o_proj, attention_norm, attention_output_norm = 67, (84, 172), (192, 216), 204, 234
    stream, feed_forward_norm, feed_forward = STREAM, 318, (342, 376)
    beside_stream = lm_head = (STREAM - 20, STREAM + 20)
    position = (302, 330)
    size, legend, scale = (WIDTH, HEIGHT), (732, 16), (722, 392, 896, 400)

    def to_xy(self, along: float, across: float) -> tuple[float, float]:
        return along, across

    @cached_property
    def block_length(self) -> float:
        return (RIGHT - LEFT) / self.config.num_layers

    @cached_property
    def offsets(self) -> Mapping[str, float]:
        return OFFSETS[self.config.norm_placement]

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
        middle = STREAM + ROW * (row - (self.num_next_tokens - 1) / 2)
        return NEXT_TOKENS[0], middle - ROW / 2 + 1, NEXT_TOKENS[1], middle + ROW / 2 - 1
