"""Patching of values from another run."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from explorer.state.interventions.intervention import Intervention, Text, join_token_ids
from explorer.translations import N_, _
from model.config import ModelConfig


@dataclass(frozen=True)
class CrossRunIntervention(Intervention):
    """A value of another run, set at the positions of the run's prompt; positions after the prompt do not change.

    Attributes:
        source: the other run, from the page's state and not in the text: a `Run`, with the same text if it has none
            of its own; for programs its `Trace`. Before the pass it becomes its values
            (`explorer.tracing.comparison`).
        prompt: ids at the positions that it applies to; None: all of the first pass.
        pins: pairs of positions that the user aligned.
    """

    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"embed|final_norm|blocks\.\d+\.(?!attn\.scores$).+"),
        N_("embed, final_norm and what a layer computes but for attn.scores"),
    )

    source: Hashable = None
    prompt: tuple[int, ...] | None = None
    pins: tuple[tuple[int, int], ...] = ()

    def for_prompt(self, prompt: Sequence[int]) -> Intervention:
        return replace(self, prompt=tuple(prompt))

    def value_label(self) -> str:
        """Return a label of the value, for example "head 1 of layer 2" or "resid_post of layer 2"."""
        layer, name, part = self.target_labels()
        if name != "attn.z":
            part = name if part is None else _("{part} of {name}", part=part, name=name)
        elif part is None:
            part = _("all heads")
        return part if layer is None else _("{name} of layer {layer}", name=part, layer=layer)


class Patch(CrossRunIntervention):
    """The value at the aligned token of the other run (activation patching); positions without one do not change."""

    operation: ClassVar[str] = "patch"

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        return _("{name} as in the other run", name=self.value_label())


class PatchMean(CrossRunIntervention):
    """The mean of the value over the other run's prompt, at every position (mean intervention)."""

    operation: ClassVar[str] = "patch_mean"
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"embed|final_norm|blocks\.\d+\.(?!attn\.(scores|pattern)$).+"),
        N_("embed, final_norm and what a layer computes but for attn.scores and attn.pattern"),
    )

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        return _("{name} at its mean over the other run", name=self.value_label())
