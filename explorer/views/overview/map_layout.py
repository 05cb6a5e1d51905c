"""Base of the map's layouts: positions of a model's parts along the data flow and across it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from explorer.architecture.block_layout import block_layout
from explorer.architecture.residual_stream import normalised_sublayer, norms_on_residual_stream, sublayers_reading
from model.config import ModelConfig

Box = tuple[float, float, float, float]  # left, upper, right and lower edge
Span = tuple[float, float]  # start and end


@dataclass(frozen=True)
class MapLayout(ABC):
    """Positions of the parts of a model, in pixels of a figure that is scaled up on wider screens.

    They are coordinates along the data flow and across it, attention before the stream and feed-forward after
    it. `to_xy` maps them to x and y, and so decides the direction of the data flow.

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

    @abstractmethod
    def to_xy(self, along: float, across: float) -> tuple[float, float]:
        """Return the x and y of a point."""

    @property
    @abstractmethod
    def size(self) -> tuple[float, float]:
        """Width and height of the map."""

    @property
    @abstractmethod
    def block_length(self) -> float:
        """The length of a block along the data flow."""

    @property
    @abstractmethod
    def offsets(self) -> Mapping[str, float]:
        """Offsets along a block, as fractions of its length, at which vectors are read, added and normalised."""

    @property
    @abstractmethod
    def spans(self) -> Mapping[str, Span]:
        """Spans along a block, as fractions of its length, of "heads", "o_proj" and "feed_forward"."""

    @property
    @abstractmethod
    def disc_width(self) -> float:
        """The diameter of the discs of norms, additions and rotations."""

    @property
    @abstractmethod
    def max_line_width(self) -> float:
        """The line width of the vector with the largest norm."""

    @property
    @abstractmethod
    def head_columns(self) -> int:
        """The number of columns of a block's heads, all of equal length."""

    @property
    @abstractmethod
    def labelled_kinds(self) -> tuple[str, ...]:
        """The kinds of parts that have room for their label."""

    @property
    @abstractmethod
    def legend(self) -> tuple[float, float]:
        """The x and y of the centre of the legend's first disc."""

    @property
    @abstractmethod
    def scale(self) -> Box:
        """The edges of the colour bar."""

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

    def corners(self, *points: tuple[float, float]) -> tuple[float, ...]:
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
