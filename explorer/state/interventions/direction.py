"""Directions in the residual stream, added or taken out."""

import re
from dataclasses import dataclass
from typing import ClassVar

from explorer.language import N_, _, look_up
from explorer.state.errors import UserError
from explorer.state.interventions.intervention import Intervention
from model.config import ModelConfig


@dataclass(frozen=True)
class Recipe:
    """Which direction: a kind, and the numbers that say which of that kind.

    `explorer/tracing/directions.py` makes it of a model's weights.
    """

    kind: str
    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> "Recipe":
        """UserError where the text names no direction."""
        for kind, (pattern, _words, _limits) in RECIPES.items():
            if match := re.fullmatch(pattern, text, re.ASCII):
                return cls(kind, tuple(map(int, match.groups())))
        told = _("a direction is unembed.ID, unembed.ID-ID, neuron.LAYER.NUMBER or ov.LAYER.HEAD.NUMBER, got {got!r}")
        raise UserError(told.format(got=text[:80]))

    def words(self) -> str:
        return look_up(RECIPES[self.kind][1], **dict(zip("abc", self.numbers, strict=False)))

    def check(self, config: ModelConfig):
        """UserError where the model has not what it names."""
        for number, (what, size) in zip(self.numbers, RECIPES[self.kind][2], strict=True):
            if number >= size(config):
                told = _("{what} run from 0 to {last}, got {got}")
                raise UserError(told.format(what=look_up(what), last=size(config) - 1, got=number))


ID = (N_("token ids"), lambda config: config.vocab_size)
LAYER = (N_("layers"), lambda config: config.num_layers)
NEURON = (N_("neurons"), lambda config: config.d_ff)
HEAD = (N_("heads"), lambda config: config.num_heads)
RANK = (N_("directions of a head"), lambda config: config.d_head)
N = "([0-9]{1,9})"
# kind -> how it is written, in words, and what its numbers count
RECIPES = {
    "unembed": (rf"unembed\.{N}", N_("the unembedding of token {a}"), (ID,)),
    "difference": (rf"unembed\.{N}-{N}", N_("the unembedding of token {a} less that of token {b}"), (ID, ID)),
    "neuron": (rf"neuron\.{N}\.{N}", N_("what neuron {b} of layer {a} writes"), (LAYER, NEURON)),
    "ov": (rf"ov\.{N}\.{N}\.{N}", N_("direction {c} of what head {b} of layer {a} writes"), (LAYER, HEAD, RANK)),
}


class Along(Intervention):
    """A change of the stream, or of what a sublayer adds to it, along a direction of length 1."""

    names: ClassVar[str] = "unembed.17"
    is_whole: ClassVar[bool] = True
    values: ClassVar[tuple[re.Pattern, str]] = (
        re.compile(r"embed|blocks\.\d+\.(resid_(pre|mid|post)|(attn|ffn)\.out)"),
        N_("the whole of embed, or of resid_pre, resid_mid, resid_post, attn.out or ffn.out of a layer"),
    )

    def __post_init__(self):
        super().__post_init__()
        Recipe.parse(self.by)

    @property
    def recipe(self) -> Recipe:
        return Recipe.parse(self.by)

    def check(self, config: ModelConfig, taps):
        super().check(config, taps)
        self.recipe.check(config)

    def what(self, config: ModelConfig) -> str:
        layer, name, _part = self.part()
        name = name if layer is None else _("{name} of layer {layer}", name=name, layer=layer)
        return self.said().format(
            name=name, direction=self.recipe.words(), amount=f"{self.amount:.10g}".replace("-", "−")
        )

    def said(self) -> str:
        raise NotImplementedError


class Add(Along):
    """x + α ‖x‖ u: the amount is α, in lengths of the vector x that stands there; u is the direction."""

    operation: ClassVar[str] = "add"
    least: ClassVar[float] = -100
    most: ClassVar[float] = 100

    def said(self) -> str:
        return _("{amount} of its length added to {name}, along {direction}")


class Remove(Along):
    """x − (x·u) u: nothing is left of x along the direction u."""

    operation: ClassVar[str] = "remove"

    def said(self) -> str:
        return _("{direction} taken out of {name}")
