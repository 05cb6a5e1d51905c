"""Queries that may not look at a key."""

import torch
from torch import Tensor

from explorer.state.errors import UserError
from explorer.state.interventions import Edge, Mask, nothing_left
from explorer.tracing.interventions.intervention_hooks import Change, InterventionHooks, Passes
from model.layers.attention import attention_pattern, causal_mask
from model.layers.softcap import softcap
from model.transformer_lm import TransformerLM


def hidden(edits: list[Edge], passes: Passes, output: Tensor) -> Tensor:
    """(H, T, K) booleans of a pattern (B, H, T, K) or scores: True where edits let no query look."""
    found = torch.zeros(output.shape[1:], dtype=torch.bool, device=output.device)
    for edit in edits:
        if edit.key < output.shape[-1]:
            heads = slice(None) if edit.index is None else edit.index
            found[heads, :, edit.key] |= passes.rows(edit, output)[:, 0]
    return found


class Dropping(InterventionHooks):
    """Of `Drop`."""

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        def drop(module, inputs, pattern):
            return pattern.masked_fill(hidden([self.edit], passes, pattern), 0)

        return [(lm.taps[self.edit.tap], drop)]


class Masking(InterventionHooks):
    """Of `Mask`: the softmax of the scores anew, over the keys that are left; all masks of a layer at once.

    The scores are those that the model computed, since captured scores are those before any mask.
    """

    def together(self, passes: Passes) -> list[Mask]:
        return [edit for edit in passes.edits if isinstance(edit, Mask) and edit.tap == self.edit.tap]

    def watches(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        def keep(module, inputs, scores):
            passes.scores[self.edit.tap] = scores

        return [(lm.taps[scores_of(self.edit.tap)], keep)]

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        edits = self.together(passes)
        if self.edit != edits[0]:
            return []

        def mask(module, inputs, pattern):
            scores, unseen = passes.scores.pop(self.edit.tap), hidden(edits, passes, pattern)
            window = lm.config.window(int(self.edit.tap.split(".")[1]))
            seen = causal_mask(*pattern.shape[-2:], device=pattern.device, window=window) & ~unseen
            if not (left := seen.any(-1)).all():
                query = int(torch.nonzero(~left.all(0))[0])
                raise UserError(nothing_left(passes.start + query))
            again = attention_pattern(softcap(scores, lm.config.score_cap), seen[None])
            return torch.where(unseen.any(-1, keepdim=True), again.to(pattern.dtype), pattern)

        return [(lm.taps[self.edit.tap], mask)]


def scores_of(pattern: str) -> str:
    return f"{pattern.rpartition('.')[0]}.scores"
