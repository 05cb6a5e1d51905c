"""Hooks that block attention from queries to a key."""

import torch
from torch import Tensor

from explorer.state.errors import UserError
from explorer.state.interventions import AttentionEdge, MaskEdge, no_key_left_message
from explorer.tracing.interventions.base import InterventionHooks, ModuleHook, PassContext
from model.layers.attention import attention_pattern, causal_mask, softcap
from model.transformer_lm import TransformerLM


def blocked_edges(edges: list[AttentionEdge], pass_context: PassContext, output: Tensor) -> Tensor:
    """Return the mask of blocked edges of a pattern or scores (B, H, T, K): (H, T, K) booleans, True for blocked."""
    blocked = torch.zeros(output.shape[1:], dtype=torch.bool, device=output.device)
    for edge in edges:
        if edge.key < output.shape[-1]:
            heads = slice(None) if edge.index is None else edge.index
            blocked[heads, :, edge.key] |= pass_context.position_mask(edge, output)[:, 0]
    return blocked


class DropEdgeHooks(InterventionHooks):
    """Hooks of `DropEdge`: set weights of the attention pattern to 0."""

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        def drop(module, inputs, pattern):
            return pattern.masked_fill(blocked_edges([self.intervention], pass_context, pattern), 0)

        return [(lm.taps[self.intervention.tap], drop)]


class MaskEdgeHooks(InterventionHooks):
    """Hooks of `MaskEdge`: the softmax over the remaining keys, for all masks of a layer at once.

    It is computed from the scores that the model computed: captured scores are those before any mask.
    """

    def active_masks(self, pass_context: PassContext) -> list[MaskEdge]:
        return [mask for mask in pass_context.edits if isinstance(mask, MaskEdge) and mask.tap == self.intervention.tap]

    def observers(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        def store_scores(module, inputs, scores):
            pass_context.scores[self.intervention.tap] = scores

        return [(lm.taps[scores_tap(self.intervention.tap)], store_scores)]

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        masks = self.active_masks(pass_context)
        if self.intervention != masks[0]:
            return []

        def mask(module, inputs, pattern):
            scores, blocked = (
                pass_context.scores.pop(self.intervention.tap),
                blocked_edges(masks, pass_context, pattern),
            )
            window = lm.config.window(int(self.intervention.tap.split(".")[1]))
            visible = causal_mask(*pattern.shape[-2:], device=pattern.device, window=window) & ~blocked
            if not (has_key := visible.any(-1)).all():
                query = int(torch.nonzero(~has_key.all(0))[0])
                raise UserError(no_key_left_message(pass_context.start + query))
            renormalised = attention_pattern(softcap(scores, lm.config.score_cap), visible[None])
            return torch.where(blocked.any(-1, keepdim=True), renormalised.to(pattern.dtype), pattern)

        return [(lm.taps[self.intervention.tap], mask)]


def scores_tap(pattern: str) -> str:
    """Return the tap of the scores of a pattern's tap."""
    return f"{pattern.rpartition('.')[0]}.scores"
