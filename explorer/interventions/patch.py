"""Patching of values from another run."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

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


KINDS = (Patch, PatchMean)
