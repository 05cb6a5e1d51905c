"""A ground plan of a model: where its parts stand along the data's way, and across it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from explorer.architecture.layout import layout
from explorer.architecture.stream import giver, readers, stream_norms
from model.config import ModelConfig

Box = tuple[float, float, float, float]  # left, upper, right and lower edge
Span = tuple[float, float]  # from where to where


@dataclass(frozen=True)
class Plan(ABC):
    """Where the parts of a model stand, in pixels of a picture that a wider screen enlarges: how far along the data's
    way and how far across it, attention before the stream and feed-forward after it. What `spot` makes of that decides
    which way the data runs.

    Attributes:
        config: of the model.
        listed: how many next tokens are.
    """

    config: ModelConfig
    listed: int = 0

    # Along
    token: ClassVar[Span]  # and the position's vector
    position_added: ClassVar[float]
    start: ClassVar[float]  # of the blocks
    after_blocks: ClassVar[Mapping[str, float]]  # from their end on: what is made of the stream
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
    def spot(self, along: float, across: float) -> tuple[float, float]:
        """Its x and y."""

    @property
    @abstractmethod
    def size(self) -> tuple[float, float]:
        """Width and height of the picture."""

    @property
    @abstractmethod
    def block(self) -> float:
        """How long a block is."""

    @property
    @abstractmethod
    def places(self) -> Mapping[str, float]:
        """Along a block, in shares of its length: where its vectors are read, added and normalised."""

    @property
    @abstractmethod
    def spans(self) -> Mapping[str, Span]:
        """Likewise, from where to where "heads", "o_proj" and "feed_forward" are."""

    @property
    @abstractmethod
    def disc_width(self) -> float:
        """Of norms, additions and rotations."""

    @property
    @abstractmethod
    def thickest(self) -> float:
        """How thick the longest vector is."""

    @property
    @abstractmethod
    def head_columns(self) -> int:
        """In how many columns a block's heads stand, all equally long."""

    @property
    @abstractmethod
    def written(self) -> tuple[str, ...]:
        """The kinds of parts that have room for what is written on them."""

    @property
    @abstractmethod
    def legend(self) -> tuple[float, float]:
        """The x and y of its first disc's centre."""

    @property
    @abstractmethod
    def scale(self) -> Box:
        """The bar of colours."""

    @abstractmethod
    def next_token(self, row: int) -> Box:
        """One of those listed."""

    @property
    def end(self) -> float:
        """Of the blocks, along."""
        return self.at(self.config.num_layers, 0)

    def after(self, name: str) -> float:
        """Where along is what follows the blocks: "final_norm", the "lm_head" to its "lm_head_end", or the "list"."""
        return self.end + self.after_blocks[name]

    def at(self, layer: int, share: float) -> float:
        return self.start + (layer + share) * self.block

    def place(self, layer: int, name: str) -> float:
        return self.at(layer, self.places[name])

    def span(self, layer: int, name: str) -> Span:
        first, last = self.spans[name]
        return self.at(layer, first), self.at(layer, last)

    def middle(self, layer: int) -> float:
        """Of the heads, along."""
        return sum(self.span(layer, "heads")) / 2

    def box(self, along: Span, across: Span) -> Box:
        return *self.spot(along[0], across[0]), *self.spot(along[1], across[1])

    def disc(self, along: float, across: float) -> Box:
        """The edges of a disc with this centre."""
        radius = self.disc_width / 2
        return self.box((along - radius, along + radius), (across - radius, across + radius))

    def corners(self, *spots: tuple[float, float]) -> tuple[float, ...]:
        """The x and y in turn of spots that are given along and across."""
        return tuple(at for spot in spots for at in self.spot(*spot))

    def norm(self, layer: int, name: str) -> tuple[float, float]:
        """The centre of a norm, along and across: on the stream, or on the way into its sublayer or out of it; of one
        that both sublayers read, before their ways part."""
        if name in stream_norms(self.config):
            return self.place(layer, name), self.stream
        if sublayer := giver(self.config, name):
            across = {"attn": self.attention_output_norm, "ffn": self.feed_forward_norm}[sublayer]
            return self.place(layer, f"add_{sublayer}"), across
        first, *others = readers(self.config, name)
        across = {"attn": self.attention_norm, "ffn": self.feed_forward_norm}[first]
        return self.place(layer, name if others else f"read_{first}"), across

    def sum(self, layer: int, sublayer: str) -> float:
        """Where along a bar stands for what a sublayer adds: at its addition, or beside it where there are two."""
        along, two = self.place(layer, f"add_{sublayer}"), len(layout(self.config).sums) == 1
        return along + two * {"attn": -0.1, "ffn": 0.1}[sublayer] * self.block

    def head(self, layer: int, head: int) -> Box:
        """A head's cell; they are read like lines of text."""
        columns = self.head_columns
        rows = self.config.num_heads // columns
        left, upper, right, lower = self.box(self.span(layer, "heads"), self.heads)
        row, column = divmod(head, columns)
        width, height = (right - left) / columns, (lower - upper) / rows
        return left + column * width, upper + row * height, left + (column + 1) * width, upper + (row + 1) * height

    def changes(self) -> list[float]:
        """Where along the stream its vector changes: at the additions and, in a post-norm model, at the norms."""
        sums = layout(self.config).sums
        names = [f"add_{sums[name][0]}" if name in sums else name for name in layout(self.config).stream[1:]]
        return [self.place(layer, name) for layer in range(self.config.num_layers) for name in names]
