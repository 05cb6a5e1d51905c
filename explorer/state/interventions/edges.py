"""Queries that may not look at a key."""

import re
from typing import ClassVar

from explorer.language import N_, _
from explorer.state.errors import UserError
from explorer.state.interventions.intervention import Intervention, Text, as_ids
from model.config import ModelConfig


class Edge(Intervention):
    """The amount is the key; the queries are the positions, and all heads of the layer where no index says which; with
    a * in the place of the layer it holds in all layers.

    What is captured as `attn.scores` stays as it is: like the causal mask, this acts on the way to `attn.pattern`.
    """

    most: ClassVar[float] = 10**6
    whole: ClassVar[bool] = True
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"blocks\.(\d+|\*)\.attn\.pattern"),
        N_(
            "the pattern of a layer, such as blocks.0.attn.pattern, of one head, such as blocks.0.attn.pattern.1, or "
            "of all layers, blocks.*.attn.pattern"
        ),
    )

    def __post_init__(self):
        super().__post_init__()
        if self.positions and not self.positions.is_open and self.positions.furthest < self.amount:
            told = _("position {query} does not see position {key}, which comes later: name a key before the query")
            raise UserError(told.format(query=self.positions.furthest, key=self.key))

    @property
    def key(self) -> int:
        return int(self.amount)

    @property
    def known_by(self) -> str:
        return f"{super().known_by}*{self.key}"

    def __str__(self) -> str:
        return self.known_by

    def hides_from(self, query: int) -> bool:
        """Whether the query may not look at the key."""
        return query >= self.key and (self.positions is None or query in self.positions)

    def taps_in(self, config: ModelConfig) -> tuple[str, ...]:
        """Names of the values that it changes in a model: its own, or that of each layer."""
        if "*" not in self.tap:
            return (self.tap,)
        return tuple(self.tap.replace("*", str(layer)) for layer in range(config.num_layers))

    def check(self, config: ModelConfig, taps):
        super().check(config, taps)
        if self.key >= config.context_length:
            told = _("this model sees positions 0 to {last}, got {got}", last=config.context_length - 1, got=self.key)
            raise UserError(told)

    def words(self, config: ModelConfig, text: Text = as_ids) -> str:
        layer, _name, part = self.part()
        heads = _("all heads") if part is None else part
        if layer is None:
            heads = _("{name} of every layer", name=heads)
        else:
            heads = _("{name} of layer {layer}", name=heads, layer=layer)
        queries = _("no token") if self.positions is None else _("no query {where}", where=self.positions.words())
        return self.said().format(queries=queries, key=self.key, heads=heads)

    def said(self) -> str:
        raise NotImplementedError


class Mask(Edge):
    """Before the softmax, as the causal mask: score −∞, and the others share all of the attention."""

    operation: ClassVar[str] = "mask"

    def __post_init__(self):
        super().__post_init__()
        if self.hides_from(0):
            raise UserError(nothing_left(0))

    def said(self) -> str:
        return _("{queries} sees position {key} with {heads}; the other weights make up for it")


class Drop(Edge):
    """After the softmax: weight 0, the others as they were, so that they sum to less than 1."""

    operation: ClassVar[str] = "drop"

    def said(self) -> str:
        return _("{queries} sees position {key} with {heads}; the other weights stay")


def nothing_left(query: int) -> str:
    return _(
        "query {query} would have no key left to look at: name other queries after the @, such as @{next}-, or use "
        "'drop'",
        query=query,
        next=query + 1,
    )
