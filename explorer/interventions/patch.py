"""Patching of values from another run."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from explorer.errors import UserError
from explorer.interventions.intervention import (
    ForwardPassState,
    Intervention,
    ModuleHook,
    Replacement,
    Text,
    TraceLike,
    join_token_ids,
)
from explorer.translations import N_, _
from model.config import ModelConfig
from model.transformer_lm import TransformerLM


@dataclass(frozen=True, eq=False)
class PatchValues:
    """The values that a patch sets.

    Attributes:
        values: (…, P, N) float32 for the first P positions; NaN at positions that are not patched.
        prompt: ids of the P tokens that they were read for.
    """

    values: np.ndarray
    prompt: tuple[int, ...]

    def rows(self, start: int, length: int, width: int) -> np.ndarray:
        """Return the values from position `start` on, (…, length, width).

        NaN after the last position; attention weights are 0 for keys after the prompt.
        """
        rows = np.full((*self.values.shape[:-2], length, width), np.nan, dtype=np.float32)
        overlap = self.values[..., start : start + length, :width]
        rows[..., : overlap.shape[-2], :] = 0
        rows[..., : overlap.shape[-2], : overlap.shape[-1]] = overlap
        return rows

    def is_set(self, positions: np.ndarray) -> np.ndarray:
        """Return for each position, in an array of any shape, whether it is patched."""
        filled = np.isfinite(self.values).all(axis=-1).reshape(-1, self.values.shape[-2]).all(axis=0)  # (P,)
        within = positions < len(filled)
        return within & filled[np.where(within, positions, 0)]

    def check(self, token_ids: Sequence[int]):
        """Raise UserError if a run does not start with the tokens that the values were read for."""
        count = min(len(token_ids), len(self.prompt))
        if tuple(token_ids[:count]) != self.prompt[:count]:
            raise UserError(source_too_short_message())


@dataclass(frozen=True)
class CrossRunIntervention(Replacement):
    """A value of another run, set at the positions of the run's prompt; positions after the prompt do not change.

    Attributes:
        source: the other run, from the page's state and not in the text: a `RunRequest`, with the same text if it has
            none of its own; for programs its `Trace`. Before the pass it becomes its values
            (`explorer.tracing.comparison`).
        prompt: ids at the positions that it applies to; None: all of the first pass.
        pins: pairs of positions that the user aligned.
        source_name: what the other run is called, "A" or "B"; "" if it has no name.
    """

    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"embed|final_norm|blocks\.\d+\.(?!attn\.scores$).+"),
        N_("embed, final_norm and what a layer computes but for attn.scores"),
    )

    source: Hashable = None
    prompt: tuple[int, ...] | None = None
    pins: tuple[tuple[int, int], ...] = ()
    source_name: str = ""

    def for_prompt(self, prompt: Sequence[int]) -> Intervention:
        return replace(self, prompt=tuple(prompt))

    def component_label(self) -> str:
        """Return a label of the value, for example "layer 2 head 1" or "resid_post of layer 2"."""
        layer, name, part = self.target_labels()
        if name != "attn.z":
            return self.target_text()
        if part is None:
            return _("{name} of layer {layer}", name=_("all heads"), layer=layer)
        return _("layer {layer} head {head}", layer=layer, head=self.index)

    def hooks(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        """Return the hook, once `resolve_patches` has read the values."""
        patch_values = self.source

        def patch(module, inputs, output):
            if pass_context.start == 0:
                patch_values.check(pass_context.ids)
            elif pass_context.start >= len(patch_values.prompt):  # what comes after the prompt is left as it is
                return None
            rows = patch_values.rows(pass_context.start, *output.shape[-2:])
            new_values = torch.tensor(rows, device=output.device).to(output.dtype)
            return torch.where(pass_context.selection_mask(self, output) & ~new_values.isnan(), new_values, output)

        return [(lm.taps[self.tap], patch)]

    def recompute(self, trace: TraceLike, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mask, source_values = self.element_mask(value.shape), self.source.rows(0, *value.shape[-2:]).astype(np.float64)
        return np.where(mask, source_values, value), np.where(mask, np.abs(source_values), sizes)

    def symbol(self) -> str:
        return _("the other run’s")

    def is_active(self, position: int | np.ndarray | None) -> np.ndarray:
        return super().is_active(position) & self.source.is_set(np.asarray(position))


class Patch(CrossRunIntervention):
    """The value at the aligned token of the other run (activation patching); positions without one do not change."""

    operation: ClassVar[str] = "patch"
    order: ClassVar[int] = 60

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        if self.source_name:
            return _("{name} as in {run}", name=self.component_label(), run=self.source_name)
        return _("{name} as in the other run", name=self.component_label())


class PatchMean(CrossRunIntervention):
    """The mean of the value over the other run's prompt, at every position (mean intervention)."""

    operation: ClassVar[str] = "patch_mean"
    order: ClassVar[int] = 61
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"embed|final_norm|blocks\.\d+\.(?!attn\.(scores|pattern)$).+"),
        N_("embed, final_norm and what a layer computes but for attn.scores and attn.pattern"),
    )

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        if self.source_name:
            return _("{name} at its mean over {run}", name=self.component_label(), run=self.source_name)
        return _("{name} at its mean over the other run", name=self.component_label())


def no_source_message() -> str:
    """Return the error message for a patch without a second run."""
    return _("a patch needs the values of a second run, and there is none: compare with one, or remove the patch")


def source_too_short_message() -> str:
    """Return the error message for patched tokens that were cut off."""
    return _(
        "the text exceeds the context window, so that patched tokens were cut off: remove the patches, or shorten "
        "the text"
    )


KINDS = (Patch, PatchMean)
