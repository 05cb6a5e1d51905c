"""Masks that block attention from queries to a key, before or after the softmax."""

import re
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from explorer.errors import UserError
from explorer.interventions.intervention import (
    ForwardPassState,
    Intervention,
    ModuleHook,
    Text,
    TraceLike,
    join_token_ids,
)
from explorer.translations import N_, _
from model.config import ModelConfig
from model.layers.attention import attention_pattern, causal_mask, softcap
from model.transformer_lm import TransformerLM


class AttentionEdgeIntervention(Intervention):
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


def no_key_left_message(query: int) -> str:
    """Return the error message for a query whose last key would be masked."""
    return _(
        "query {query} would have no key left to attend to: name other queries after the @, such as @{next}-, or use "
        "'drop'",
        query=query,
        next=query + 1,
    )


def blocked_edges(edges: list[AttentionEdgeIntervention], pass_context: ForwardPassState, output: Tensor) -> Tensor:
    """Return the mask of blocked edges of a pattern or scores (B, H, T, K): (H, T, K) booleans, True for blocked."""
    blocked = torch.zeros(output.shape[1:], dtype=torch.bool, device=output.device)
    for edge in edges:
        if edge.key < output.shape[-1]:
            heads = slice(None) if edge.index is None else edge.index
            blocked[heads, :, edge.key] |= pass_context.position_mask(edge, output)[:, 0]
    return blocked


def scores_tap(pattern: str) -> str:
    """Return the tap of the scores of a pattern's tap."""
    return f"{pattern.rpartition('.')[0]}.scores"


class MaskEdge(AttentionEdgeIntervention):
    """A mask before the softmax, like the causal mask: score −∞; the other weights are renormalised.

    One hook applies all masks of a layer, from the scores that the model computed: captured scores are those before
    any mask.
    """

    operation: ClassVar[str] = "mask"
    order: ClassVar[int] = 21

    def __post_init__(self):
        super().__post_init__()
        if self.blocks_query(0):
            raise UserError(no_key_left_message(0))

    def template(self) -> str:
        return _("{queries} sees position {key} with {heads}; the other weights make up for it")

    def observers(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        def store_scores(module, inputs, scores):
            pass_context.scores[self.tap] = scores

        return [(lm.taps[scores_tap(self.tap)], store_scores)]

    def hooks(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        masks = [mask for mask in pass_context.edits if isinstance(mask, MaskEdge) and mask.tap == self.tap]
        if self != masks[0]:
            return []

        def mask(module, inputs, pattern):
            scores, blocked = pass_context.scores.pop(self.tap), blocked_edges(masks, pass_context, pattern)
            window = lm.config.window(int(self.tap.split(".")[1]))
            visible = causal_mask(*pattern.shape[-2:], device=pattern.device, window=window) & ~blocked
            if not (has_key := visible.any(-1)).all():
                query = int(torch.nonzero(~has_key.all(0))[0])
                raise UserError(no_key_left_message(pass_context.start + query))
            renormalised = attention_pattern(softcap(scores, lm.config.score_cap), visible[None])
            return torch.where(blocked.any(-1, keepdim=True), renormalised.to(pattern.dtype), pattern)

        return [(lm.taps[self.tap], mask)]


class DropEdge(AttentionEdgeIntervention):
    """A weight set to 0 after the softmax; the others do not change, so that they sum to less than 1."""

    operation: ClassVar[str] = "drop"
    order: ClassVar[int] = 40

    def template(self) -> str:
        return _("{queries} sees position {key} with {heads}; the other weights stay")

    def hooks(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        def drop(module, inputs, pattern):
            return pattern.masked_fill(blocked_edges([self], pass_context, pattern), 0)

        return [(lm.taps[self.tap], drop)]

    def recompute(self, trace: TraceLike, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mask = self.element_mask(value.shape)
        return np.where(mask, 0.0, value), np.where(mask, 0.0, sizes)

    def element_mask(self, shape: tuple[int, ...]) -> np.ndarray:
        return super().element_mask(shape) & (np.arange(shape[-1]) == self.key)

    def symbol(self) -> str:
        return "× 0"


KINDS = (MaskEdge, DropEdge)
