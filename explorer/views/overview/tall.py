"""The ground plan for a telephone: the data runs from top to bottom, attention left of the stream, feed-forward right.
Parts are as large as fingers need them, and the picture as long as the model is deep."""

import math
from collections.abc import Mapping
from functools import cached_property

from explorer.architecture.stream import output_norm
from explorer.views.overview.plan import Box, Plan, Span

WIDTH = 350  # no more than a telephone has, so that words stay as large as they are
LEFT, RIGHT = 4, WIDTH - 4
STREAM = 225
ATTENTION = 151  # where its name and, unless they are moved, its heads end
TITLE, HEADS, HEAD_HEIGHT = 8, 20, 88  # from a block's upper edge: its title, its heads, and how high all are at least
LEAST_HEAD = (24, 26)  # width and height of a head's cell
WORDS, LINE = 10, 13  # below the heads: the first line of words, and how far apart lines are
ROW = 46  # of the list of next tokens
# From a block's upper edge.
PLACES = {
    "pre": {"read_attn": 34, "add_attn": 74, "read_ffn": 100, "add_ffn": 128},
    "parallel": {"read_attn": 64, "add_attn": 98, "read_ffn": 64, "add_ffn": 98},
    **dict.fromkeys(("output", "sandwich"), {"read_attn": 34, "add_attn": 74, "read_ffn": 100, "add_ffn": 128}),
    "shared": {"attn_norm": 46, "read_attn": 68, "add_attn": 98, "read_ffn": 68, "add_ffn": 98},
    "post": {"read_attn": 34, "add_attn": 74, "attn_norm": 102, "read_ffn": 124, "add_ffn": 150, "ffn_norm": 176},
}
FEED_FORWARD = {
    **dict.fromkeys(("pre", "output", "sandwich"), (86, 142)),
    **dict.fromkeys(("parallel", "shared"), (52, 112)),
    "post": (110, 164),
}
BLOCK = {**dict.fromkeys(PLACES, 148), "post": 192}  # at least
OUTPUT_NORM = 20  # the room that a norm takes between attention and the stream


class Tall(Plan):
    """As narrow as a telephone's screen, whatever the number of layers."""

    token, position_added, start = (4, 48), 64, 84
    after_blocks = {"final_norm": 28, "lm_head": 50, "lm_head_end": 94, "list": 126}
    rotary, attention_norm, attention_output_norm = 13, 180, 197
    stream, feed_forward_norm, feed_forward = STREAM, 251, (269, RIGHT)
    beside_stream, position, lm_head = (150, 252), (262, RIGHT), (LEFT, RIGHT)
    disc_width, thickest, legend = 22, 22, (13, 14)
    written = ("token", "position", "head", "o_proj", "feed_forward", "lm_head")

    def spot(self, along: float, across: float) -> tuple[float, float]:
        return across, along

    @property
    def size(self) -> tuple[float, float]:
        return WIDTH, self.scale[3] + 18

    @property
    def heads(self) -> Span:
        return (31 if self.config.position == "rope" else LEFT), ATTENTION - self.moved

    @property
    def o_proj(self) -> Span:
        return 159 - self.moved, 201 - self.moved

    @property
    def moved(self) -> float:
        """By how much attention is further from the stream, where a norm stands between them."""
        return 0 if output_norm(self.config, 0, "attn") is None else OUTPUT_NORM

    @cached_property
    def head_columns(self) -> int:
        """Cells are as square as may be, and wide enough."""
        heads, width = self.config.num_heads, self.heads[1] - self.heads[0]
        most = max(1, int(width / LEAST_HEAD[0]))
        divisors = [columns for columns in range(1, most + 1) if heads % columns == 0]
        return min(
            divisors, key=lambda columns: abs(math.log(width / columns * (heads / columns) / self.high(columns)))
        )

    def high(self, columns: int) -> float:
        """How high all heads of a block are in so many columns."""
        return max(HEAD_HEIGHT, LEAST_HEAD[1] * self.config.num_heads / columns)

    @property
    def heads_end(self) -> float:
        """From a block's upper edge."""
        return HEADS + self.high(self.head_columns)

    @cached_property
    def block(self) -> float:
        return max(BLOCK[self.config.norm_placement], self.heads_end + WORDS + 2 * LINE)

    @cached_property
    def places(self) -> Mapping[str, float]:
        return {name: at / self.block for name, at in PLACES[self.config.norm_placement].items()}

    @cached_property
    def spans(self) -> Mapping[str, Span]:
        centre, feed_forward = (at[self.config.norm_placement] for at in (PLACES, FEED_FORWARD))
        o_proj = centre["add_attn"] - 22, centre["add_attn"] + 22
        spans = {"heads": (HEADS, self.heads_end), "o_proj": o_proj, "feed_forward": feed_forward}
        return {name: (first / self.block, last / self.block) for name, (first, last) in spans.items()}

    def next_token(self, row: int) -> Box:
        upper = self.after("list") + ROW * row
        return LEFT, upper, RIGHT, upper + ROW - 2

    @property
    def scale(self) -> Box:
        upper = self.after("list") + ROW * self.listed + 24
        return LEFT, upper, RIGHT, upper + 8
