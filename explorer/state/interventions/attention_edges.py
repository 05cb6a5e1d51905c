"""Interventions that block attention from queries to a key."""

import re
from typing import ClassVar

from explorer.state.errors import UserError
from explorer.state.interventions.intervention import Intervention, Text, join_token_ids
from explorer.translations import N_, _
from model.config import ModelConfig


class AttentionEdge(Intervention):
    """Base of interventions on attention edges.

    The amount is the key, the positions are the queries, and the index is the head (None: all heads of the layer);
    with a * instead of the layer it applies to all layers. The captured `attn.scores` do not change: like the
    causal mask, this acts between them and `attn.pattern`.
    """

    max_amount: ClassVar[float] = 10**6
    is_integer: ClassVar[bool] = True
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"blocks\.(\d+|\*)\.attn\.pattern"),
        N_(
            "the pattern of a layer, such as blocks.0.attn.pattern, of one head, such as blocks.0.attn.pattern.1, or "
            "of all layers, blocks.*.attn.pattern"
        ),
    )

    def __post_init__(self):
        super().__post_init__()
        if self.positions and not self.positions.is_open and self.positions.max_position < self.amount:
            message = _("position {query} does not see position {key}, which comes later: name a key before the query")
            raise UserError(message.format(query=self.positions.max_position, key=self.key))

    @property
    def key(self) -> int:
        return int(self.amount)

    @property
    def identity_key(self) -> str:
        return f"{super().identity_key}*{self.key}"

    def __str__(self) -> str:
        return self.identity_key

    def blocks_query(self, query: int) -> bool:
        """Return True if the query cannot attend to the key."""
        return query >= self.key and (self.positions is None or query in self.positions)

    def affected_taps(self, config: ModelConfig) -> tuple[str, ...]:
        """Return the names of the values that it changes in a model: its own, or that of each layer."""
        if "*" not in self.tap:
            return (self.tap,)
        return tuple(self.tap.replace("*", str(layer)) for layer in range(config.num_layers))

    def check(self, config: ModelConfig, taps):
        super().check(config, taps)
        if self.key >= config.context_length:
            message = _(
                "this model sees positions 0 to {last}, got {got}", last=config.context_length - 1, got=self.key
            )
            raise UserError(message)

    def describe(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        layer, _name, part = self.target_labels()
        heads = _("all heads") if part is None else part
        if layer is None:
            heads = _("{name} of every layer", name=heads)
        else:
            heads = _("{name} of layer {layer}", name=heads, layer=layer)
        queries = _("no token") if self.positions is None else _("no query {where}", where=self.positions.describe())
        return self.template().format(queries=queries, key=self.key, heads=heads)

    def template(self) -> str:
        raise NotImplementedError


class MaskEdge(AttentionEdge):
    """A mask before the softmax, like the causal mask: score −∞; the other weights are renormalised."""

    operation: ClassVar[str] = "mask"

    def __post_init__(self):
        super().__post_init__()
        if self.blocks_query(0):
            raise UserError(no_key_left_message(0))

    def template(self) -> str:
        return _("{queries} sees position {key} with {heads}; the other weights make up for it")


class DropEdge(AttentionEdge):
    """A weight set to 0 after the softmax; the others do not change, so that they sum to less than 1."""

    operation: ClassVar[str] = "drop"

    def template(self) -> str:
        return _("{queries} sees position {key} with {heads}; the other weights stay")


def no_key_left_message(query: int) -> str:
    """Return the error message for a query whose last key would be masked."""
    return _(
        "query {query} would have no key left to attend to: name other queries after the @, such as @{next}-, or use "
        "'drop'",
        query=query,
        next=query + 1,
    )
