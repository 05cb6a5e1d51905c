"""Values of another run in the place of a run's own."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from explorer.language import N_, _
from explorer.state.interventions.intervention import Intervention, Text, as_ids
from model.config import ModelConfig


@dataclass(frozen=True)
class FromOther(Intervention):
    """A value that another run has, in the place of the run's own at the positions of its prompt; what is written after
    the prompt is left as it is.

    Attributes:
        source: the other run, which the page's state says and no text: a `Run`, whose text is the same where it has
            none of its own; for programs its `Trace`. Before it acts it becomes what it puts in (`tracing.donation`).
        prompt: ids of the positions that it holds for; None: all of the first pass.
        pins: tokens of both that stand beside each other because somebody put them there.
    """

    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"embed|final_norm|blocks\.\d+\.(?!attn\.scores$).+"),
        N_("embed, final_norm and what a layer computes but for attn.scores"),
    )

    source: Hashable = None
    prompt: tuple[int, ...] | None = None
    pins: tuple[tuple[int, int], ...] = ()

    def of_prompt(self, prompt: Sequence[int]) -> Intervention:
        return replace(self, prompt=tuple(prompt))

    def named(self) -> str:
        """The value, as in "head 1 of layer 2" or "resid_post of layer 2"."""
        layer, name, part = self.part()
        if name != "attn.z":
            part = name if part is None else _("{part} of {name}", part=part, name=name)
        elif part is None:
            part = _("all heads")
        return part if layer is None else _("{name} of layer {layer}", name=part, layer=layer)


class Patch(FromOther):
    """The value at the token of the other run that stands beside each; positions without such a token are left as they
    are (activation patching)."""

    operation: ClassVar[str] = "patch"

    def what(self, config: ModelConfig, text: Text = as_ids) -> str:
        return _("{name} as in the other run", name=self.named())


class PatchMean(FromOther):
    """The mean of the value over the other run's prompt, at every position (mean intervention)."""

    operation: ClassVar[str] = "patch_mean"
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"embed|final_norm|blocks\.\d+\.(?!attn\.(scores|pattern)$).+"),
        N_("embed, final_norm and what a layer computes but for attn.scores and attn.pattern"),
    )

    def what(self, config: ModelConfig, text: Text = as_ids) -> str:
        return _("{name} at its mean over the other run", name=self.named())
