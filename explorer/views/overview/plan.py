"""Where the parts of a model stand on its map, in pixels of a picture that a wider screen enlarges."""

import math
from dataclasses import dataclass

from explorer.language import _
from model.config import ModelConfig

WIDTH, HEIGHT = 900, 416
LEFT, RIGHT = 118, 690  # of the blocks; before them the embedding, after them what is made of the stream
# Down from the upper edge. Attention is above the stream, feed-forward below.
TITLES, ATTENTION_ADDS, ATTENTION_WRITES, ROTATION, HEADS = 12, 32, 48, 67, (84, 172)
O_PROJ, ATTENTION_NORM, STREAM_LENGTHS, STREAM = (192, 216), 204, 238, 266
POSITION, FEED_FORWARD_NORM, FEED_FORWARD = (302, 330), 318, (342, 376)
FEED_FORWARD_ADDS, FEED_FORWARD_WRITES = 390, 406
TOKEN, LM_HEAD = (8, 88), (722, 774)  # across; the position’s is as wide as the token’s
BESIDE_STREAM = (STREAM - 20, STREAM + 20)
ROW = 24  # of the list of next tokens
POSITION_ADDED, FINAL_NORM, NEXT_TOKENS = 103, 705, (794, 896)
LEGEND, LEGEND_ROW = (732, 16), 19  # its first disc, and how far apart they are
SCALE = (722, 392, 896, 400)  # the bar of colours
# Across a block, in shares of its width.
PLACES = {
    "pre": {"read_attn": 0.12, "add_attn": 0.48, "read_ffn": 0.63, "add_ffn": 0.88},
    "post": {
        "read_attn": 0.08,
        "add_attn": 0.36,
        "attn_norm": 0.53,
        "read_ffn": 0.64,
        "add_ffn": 0.79,
        "ffn_norm": 0.95,
    },
}


Box = tuple[float, float, float, float]  # left, upper, right and lower edge


@dataclass(frozen=True)
class Plan:
    """The ground plan of a model: its parts in pixels."""

    config: ModelConfig

    @property
    def block(self) -> float:
        """How wide a block is."""
        return (RIGHT - LEFT) / self.config.num_layers

    @property
    def roomy(self) -> bool:
        """Whether a block is wide enough for words."""
        return self.block >= 80

    @property
    def numbered(self) -> bool:
        """Whether it is wide enough for a number."""
        return self.block >= 46

    def title(self, layer: int) -> str:
        return _("layer {layer}", layer=layer) if self.roomy else str(layer)

    @property
    def disc(self) -> float:
        """How wide norms, additions and rotations are."""
        return min(16, 0.16 * self.block)

    @property
    def thickest(self) -> float:
        """How thick the longest vector is."""
        return min(26, 0.28 * self.block)

    @property
    def post(self) -> bool:
        return self.config.norm_placement == "post"

    def at(self, layer: int, share: float) -> float:
        return LEFT + (layer + share) * self.block

    def place(self, layer: int, name: str) -> float:
        return self.at(layer, PLACES[self.config.norm_placement][name])

    def around(self, x: float, y: float) -> Box:
        """The edges of a disc with this centre."""
        return x - self.disc / 2, y - self.disc / 2, x + self.disc / 2, y + self.disc / 2

    def norm(self, layer: int, sublayer: str) -> tuple[float, float]:
        """The centre of a norm: on the way into its sublayer, or on the stream after what the sublayer added."""
        if self.post:
            return self.place(layer, f"{sublayer}_norm"), STREAM
        height = {"attn": ATTENTION_NORM, "ffn": FEED_FORWARD_NORM}[sublayer]
        return self.place(layer, f"read_{sublayer}"), height

    def box(self, layer: int) -> tuple[float, float]:
        """The left and right edge of a block's heads and feed-forward."""
        return self.at(layer, 0.05), self.at(layer, 0.95)

    def o_proj(self, layer: int) -> tuple[float, float]:
        centre = self.place(layer, "add_attn")
        return centre - 0.19 * self.block, centre + 0.19 * self.block

    @property
    def head_columns(self) -> int:
        """In how many columns a block's heads stand: all equally long, cells about as wide as high."""
        heads, shape = self.config.num_heads, 0.9 * self.block / (HEADS[1] - HEADS[0])
        divisors = [columns for columns in range(1, heads + 1) if heads % columns == 0]
        return min(divisors, key=lambda columns: abs(math.log(columns**2 / (heads * shape))))

    def head(self, layer: int, head: int) -> Box:
        """A head's cell; they are read like lines of text."""
        columns = self.head_columns
        rows = self.config.num_heads // columns
        (left, right), (upper, lower) = self.box(layer), HEADS
        row, column = divmod(head, columns)
        width, height = (right - left) / columns, (lower - upper) / rows
        return left + column * width, upper + row * height, left + (column + 1) * width, upper + (row + 1) * height

    def changes(self) -> list[float]:
        """Where along the stream its vector changes: at the additions and, in a post-norm model, at the norms."""
        names = ("add_attn", "attn_norm", "add_ffn", "ffn_norm") if self.post else ("add_attn", "add_ffn")
        return [self.place(layer, name) for layer in range(self.config.num_layers) for name in names]
