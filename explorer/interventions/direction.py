"""Directions in the residual stream, and interventions along them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
    format_amount,
    join_token_ids,
)
from explorer.translations import N_, _, translate
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

MAX_PROMPTS = 32  # of a list
MAX_TOKENS = 1024  # of both lists
Prompts = tuple[tuple[int, ...], ...]


def _parse_prompts(text: str) -> Prompts:
    return tuple(tuple(map(int, prompt.split("."))) for prompt in text.split("_"))


def _format_prompts(prompts: Prompts, text: Text) -> str:
    first = text(prompts[0])
    if len(prompts) == 1:
        return first
    return _("{first} and {count} more", first=first, count=len(prompts) - 1)


@dataclass(frozen=True)
class DirectionSpec:
    """The text form of a direction: a kind and its arguments.

    `explorer/tracing/weight_matrices.py` computes it from a model's weights, or from its stream over prompts.

    Attributes:
        numbers: arguments of the kind, such as layer and neuron.
        lists: two lists of prompts, each as token ids; empty for other kinds.
    """

    kind: str
    numbers: tuple[int, ...]
    lists: tuple[Prompts, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "DirectionSpec":
        """Parse a direction.

        Raises:
            UserError: the text is no direction.
        """
        for kind, (pattern, _words, _limits) in DIRECTION_KINDS.items():
            if match := re.fullmatch(pattern, text, re.ASCII):
                if kind == "means":
                    return cls.from_means(int(match[1]), *(_parse_prompts(match[i]) for i in (2, 3)))
                return cls(kind, tuple(map(int, match.groups())))
        message = _(
            "a direction is unembed.ID, unembed.ID-ID, neuron.LAYER.NUMBER, ov.LAYER.HEAD.NUMBER, or "
            "means.LAYER.IDS-IDS, got {got!r}"
        )
        raise UserError(message.format(got=text[:80]))

    @classmethod
    def from_means(
        cls, layer: int, prompts: Sequence[Sequence[int]], other_prompts: Sequence[Sequence[int]]
    ) -> "DirectionSpec":
        """Return the direction from the mean stream over the other prompts to the mean over `prompts`, after a layer.

        Raises:
            UserError: a list is empty or too long.
        """
        lists = tuple(tuple(tuple(prompt) for prompt in prompt_list) for prompt_list in (prompts, other_prompts))
        tokens = sum(len(prompt) for prompt_list in lists for prompt in prompt_list)
        if (
            not all(0 < len(prompt_list) <= MAX_PROMPTS and all(prompt_list) for prompt_list in lists)
            or tokens > MAX_TOKENS
        ):
            message = _(
                "each list of a direction has 1 to {prompts} prompts of a token or more, and both together at most "
                "{tokens} tokens, got {got} prompts of {read} tokens: leave some out",
                prompts=MAX_PROMPTS,
                tokens=MAX_TOKENS,
                got=" + ".join(str(len(prompt_list)) for prompt_list in lists),
                read=tokens,
            )
            raise UserError(message)
        return cls("means", (layer,), lists)

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        if self.kind == "means":
            texts = ("_".join(map(join_token_ids, prompt_list)) for prompt_list in self.lists)
            return f"means.{self.numbers[0]}.{'-'.join(texts)}"
        if self.kind in ("unembed", "difference"):
            return f"unembed.{'-'.join(map(str, self.numbers))}"
        return f"{self.kind}.{join_token_ids(self.numbers)}"

    def describe(self, text: Text = join_token_ids) -> str:
        """Describe the direction; `text` formats token ids."""
        if self.kind == "means":
            first, second = (_format_prompts(prompt_list, text) for prompt_list in self.lists)
            return _(
                "the mean of the stream after layer {layer} over {first} less that over {second}",
                layer=self.numbers[0],
                first=first,
                second=second,
            )
        numbers = self.numbers
        if self.kind in ("unembed", "difference"):
            numbers = [text((token_id,)) for token_id in numbers]
        return translate(DIRECTION_KINDS[self.kind][1], **dict(zip("abc", numbers, strict=False)))

    def check(self, config: ModelConfig):
        """Raise UserError if the model lacks what the direction names."""
        for number, (description, size) in zip(self.numbers, DIRECTION_KINDS[self.kind][2], strict=True):
            if number >= size(config):
                message = _("{what} run from 0 to {last}, got {got}")
                raise UserError(message.format(what=translate(description), last=size(config) - 1, got=number))
        ids = [token_id for prompt_list in self.lists for prompt in prompt_list for token_id in prompt]
        if ids and max(ids) >= config.vocab_size:
            message = _("{what} run from 0 to {last}, got {got}")
            raise UserError(message.format(what=translate(ID[0]), last=config.vocab_size - 1, got=max(ids)))
        longest = max((len(prompt) for prompt_list in self.lists for prompt in prompt_list), default=0)
        if longest > config.context_length:
            message = _("a run has 1 to {most} tokens, got {got}", most=config.context_length, got=longest)
            raise UserError(message)


ID = (N_("token ids"), lambda config: config.vocab_size)
LAYER = (N_("layers"), lambda config: config.num_layers)
NEURON = (N_("neurons"), lambda config: config.d_ff)
HEAD = (N_("heads"), lambda config: config.num_heads)
RANK = (N_("directions of a head"), lambda config: config.d_head)
N = "([0-9]{1,9})"
LIST = "[0-9]{1,9}(?:[._][0-9]{1,9})*"  # prompts, each the ids of its tokens
# kind -> how it is written, in words, and what its numbers count
DIRECTION_KINDS = {
    "unembed": (rf"unembed\.{N}", N_("the unembedding of token {a}"), (ID,)),
    "difference": (rf"unembed\.{N}-{N}", N_("the unembedding of token {a} less that of token {b}"), (ID, ID)),
    "neuron": (rf"neuron\.{N}\.{N}", N_("what neuron {b} of layer {a} writes"), (LAYER, NEURON)),
    "means": (rf"means\.{N}\.({LIST})-({LIST})", "", (LAYER,)),
    "ov": (rf"ov\.{N}\.{N}\.{N}", N_("direction {c} of what head {b} of layer {a} writes"), (LAYER, HEAD, RANK)),
}


class DirectionIntervention(Intervention):
    """An intervention on the stream, or on what a sublayer adds to it, along a unit vector."""

    argument_example: ClassVar[str] = "unembed.17"
    is_whole: ClassVar[bool] = True
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"embed|blocks\.\d+\.(resid_(pre|mid|post)|(attn|ffn)\.out)"),
        N_("the whole of embed, or of resid_pre, resid_mid, resid_post, attn.out or ffn.out of a layer"),
    )

    def __post_init__(self):
        super().__post_init__()
        DirectionSpec.parse(self.by)

    @property
    def direction(self) -> DirectionSpec:
        return DirectionSpec.parse(self.by)

    def check(self, config: ModelConfig, taps):
        super().check(config, taps)
        self.direction.check(config)

    def describe_operation(self, config: ModelConfig, text: Text = join_token_ids) -> str:
        direction, amount = self.direction.describe(text), format_amount(self.amount)
        return self.template().format(name=self.target_text(), direction=direction, amount=amount)

    def template(self) -> str:
        raise NotImplementedError

    def hooks(self, lm: TransformerLM, pass_context: ForwardPassState) -> list[ModuleHook]:
        unit = torch.tensor(pass_context.unit_vector(self.direction), dtype=torch.float32, device=lm.device)

        def change(module, inputs, output):
            changed = self.move(output.float(), unit).to(output.dtype)
            return torch.where(pass_context.position_mask(self, output), changed, output)

        return [(lm.taps[self.tap], change)]

    def move(self, x: Tensor, unit: Tensor) -> Tensor:
        """Return the vectors x (…, D) moved along the unit vector (D,)."""
        raise NotImplementedError


class AddDirection(DirectionIntervention):
    """x + α ‖x‖ u: the amount α is relative to the norm of the vector x; u is the unit vector."""

    operation: ClassVar[str] = "add"
    order: ClassVar[int] = 91
    adds: ClassVar[bool] = True
    min_amount: ClassVar[float] = -100
    max_amount: ClassVar[float] = 100

    def template(self) -> str:
        return _("{amount} of its length added to {name}, along {direction}")

    def move(self, x: Tensor, unit: Tensor) -> Tensor:
        return x + self.amount * torch.linalg.vector_norm(x, dim=-1, keepdim=True) * unit

    def recompute(self, trace: TraceLike, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, mask = trace.direction(self.direction), self.element_mask(value.shape)
        norms, terms = (np.sqrt((x * x).sum(-1)) * abs(self.amount) for x in (value, sizes))
        added = np.outer(np.sign(self.amount) * norms, u)
        return value + added * mask, sizes + np.outer(terms, np.abs(u)) * mask

    def symbol(self) -> str:
        return f"+ {format_amount(self.amount)} ‖x‖ u"


class RemoveDirection(DirectionIntervention):
    """x − (x·u) u: removes the component of x along the unit vector u."""

    operation: ClassVar[str] = "remove"
    order: ClassVar[int] = 90

    def template(self) -> str:
        return _("{direction} taken out of {name}")

    def move(self, x: Tensor, unit: Tensor) -> Tensor:
        return x - (x @ unit)[..., None] * unit

    def recompute(self, trace: TraceLike, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, mask = trace.direction(self.direction), self.element_mask(value.shape)
        projection, terms = np.outer(value.dot(u), u), np.outer(np.linalg.norm(sizes, axis=-1), np.abs(u))
        return value - projection * mask, sizes + terms * mask

    def symbol(self) -> str:
        return "− (x·u) u"

    def apply_linear(self, trace: TraceLike, x: np.ndarray, position: int | np.ndarray | None) -> np.ndarray:
        u = trace.direction(self.direction)
        return x - np.where(self.is_active(position)[..., None], (x @ u)[..., None] * u, 0.0)


KINDS = (RemoveDirection, AddDirection)
