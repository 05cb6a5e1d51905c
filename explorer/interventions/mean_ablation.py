"""Mean ablation over positions."""

import re
from collections.abc import Sequence
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
from explorer.interventions.scale_and_zero_ablation import SUBLAYERS
from explorer.translations import N_, _, translate
from model.config import ModelConfig
from model.transformer_lm import TransformerLM


@dataclass(frozen=True)
class MeanAblation(Replacement):
    """Mean ablation: at each position the mean of the value over positions.

    If the text is continued, it is the mean over the prompt, and positions after the prompt do not change.

    Attributes:
        over: number of first positions in the mean, set by the run and not in the text; None: all of the first
            pass.
    """

    operation: ClassVar[str] = "mean"
    order: ClassVar[int] = 50
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
        layer, name, _part = self.target_labels()
        if templates := SUBLAYERS.get((name, self.index is not None)):
            return translate(templates[2], layer=layer, index=self.index)
        return _("{name} at its mean over the prompt", name=self.target_text())

    def hooks(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        def average(module, inputs, output):
            if pass_context.start:  # the prompt, with its mean, is in the cache; what comes after it is left as it is
                return None
            over, length = self.over, output.shape[-2]
            if over is not None and over > length:
                message = _("the mean is over the prompt’s {over} tokens, and the model sees only {seen}: shorten it")
                raise UserError(message.format(over=over, seen=length))
            mean = output[..., :over, :].mean(-2, keepdim=True)
            mask = pass_context.selection_mask(self, output)
            if over is not None:
                mask = mask & (torch.arange(length, device=output.device) < over)[:, None]
            return torch.where(mask, mean, output)

        return [(lm.taps[self.tap], average)]

    def recompute(self, trace: TraceLike, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mask = self.element_mask(value.shape)
        means, mean_sizes = (np.average(x[..., : self.over, :], axis=-2)[..., None, :] for x in (value, sizes))
        return np.where(mask, means, value), np.where(mask, mean_sizes, sizes)

    def symbol(self) -> str:
        return _("mean over positions")

    def is_active(self, position: int | np.ndarray | None) -> np.ndarray:
        active = super().is_active(position)
        return active if self.over is None else active & (np.asarray(position) < self.over)


KINDS = (MeanAblation,)
