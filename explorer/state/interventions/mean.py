"""A value as it is on average."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from explorer.language import N_, _
from explorer.state.interventions.intervention import Intervention, Text, as_ids
from model.config import ModelConfig


@dataclass(frozen=True)
class Mean(Intervention):
    """The mean of the value over positions, in the place of the value at each of them.

    Of a text that is written on, it is the mean over the prompt, and what comes after the prompt is left as it is.

    Attributes:
        over: how many first positions the mean is over, which a run says and no text; None: all of the first pass.
    """

    operation: ClassVar[str] = "mean"
    # Where a row has as many numbers at every position: no query sees as many keys as another, and logits are the end.
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"embed|final_norm|blocks\.\d+\.(?!attn\.(scores|pattern)$).+"),
        N_("embed, final_norm and what a layer computes but for attn.scores and attn.pattern"),
    )

    over: int | None = None

    @property
    def least_tokens(self) -> int:
        return self.over or 0

    def of_prompt(self, prompt: Sequence[int]) -> Intervention:
        return replace(self, over=len(prompt))

    def what(self, config: ModelConfig, text: Text = as_ids) -> str:
        layer, name, part = self.part()
        name = name if part is None else _("{part} of {name}", part=part, name=name)
        name = name if layer is None else _("{name} of layer {layer}", name=name, layer=layer)
        return _("{name} at its mean over the prompt", name=name)
