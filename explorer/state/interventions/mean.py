"""Mean ablation over positions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from explorer.state.interventions.intervention import Intervention, Text, join_token_ids
from explorer.translations import N_, _
from model.config import ModelConfig


@dataclass(frozen=True)
class MeanAblation(Intervention):
    """Mean ablation: at each position the mean of the value over positions.

    If the text is continued, it is the mean over the prompt, and positions after the prompt do not change.

    Attributes:
        over: number of first positions in the mean, set by the run and not in the text; None: all of the first
            pass.
    """

    operation: ClassVar[str] = "mean"
    # Where a row has as many numbers at every position: no query sees as many keys as another, and logits are the end.
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"embed|final_norm|blocks\.\d+\.(?!attn\.(scores|pattern)$).+"),
        N_("embed, final_norm and what a layer computes but for attn.scores and attn.pattern"),
    )

    over: int | None = None

    @property
    def min_tokens(self) -> int:
        return self.over or 0

    def for_prompt(self, prompt: Sequence[int]) -> Intervention:
        return replace(self, over=len(prompt))

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        layer, name, part = self.target_labels()
        name = name if part is None else _("{part} of {name}", part=part, name=name)
        name = name if layer is None else _("{name} of layer {layer}", name=name, layer=layer)
        return _("{name} at its mean over the prompt", name=name)
