"""Directions in the residual stream, added or taken out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from explorer.language import N_, _, look_up
from explorer.state.errors import UserError
from explorer.state.interventions.intervention import Intervention, Text, as_ids
from model.config import ModelConfig

MOST_PROMPTS = 32  # of a list
MOST_TOKENS = 1024  # of both lists
Prompts = tuple[tuple[int, ...], ...]


def _prompts(text: str) -> Prompts:
    return tuple(tuple(map(int, prompt.split("."))) for prompt in text.split("_"))


def _written(prompts: Prompts, text: Text) -> str:
    first = text(prompts[0])
    if len(prompts) == 1:
        return first
    return _("{first} and {count} more", first=first, count=len(prompts) - 1)


@dataclass(frozen=True)
class Recipe:
    """Which direction: a kind, and what says which of that kind.

    `explorer/tracing/directions.py` makes it of a model's weights, or of its stream over prompts.

    Attributes:
        numbers: of the kind.
        lists: two lists of prompts, each the ids of its tokens; none of other kinds.
    """

    kind: str
    numbers: tuple[int, ...]
    lists: tuple[Prompts, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Recipe":
        """UserError where the text names no direction."""
        for kind, (pattern, _words, _limits) in RECIPES.items():
            if match := re.fullmatch(pattern, text, re.ASCII):
                if kind == "means":
                    return cls.of_means(int(match[1]), *(_prompts(match[i]) for i in (2, 3)))
                return cls(kind, tuple(map(int, match.groups())))
        told = _(
            "a direction is unembed.ID, unembed.ID-ID, neuron.LAYER.NUMBER, ov.LAYER.HEAD.NUMBER, or "
            "means.LAYER.IDS-IDS, got {got!r}"
        )
        raise UserError(told.format(got=text[:80]))

    @classmethod
    def of_means(cls, layer: int, prompts: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> "Recipe":
        """From the mean of the stream after a layer over some prompts to that over others.

        Raises:
            UserError: a list is empty or too long.
        """
        lists = tuple(tuple(tuple(prompt) for prompt in each) for each in (prompts, others))
        tokens = sum(len(prompt) for each in lists for prompt in each)
        if not all(0 < len(each) <= MOST_PROMPTS and all(each) for each in lists) or tokens > MOST_TOKENS:
            told = _(
                "each list of a direction has 1 to {prompts} prompts of a token or more, and both together at most "
                "{tokens} tokens, got {got} prompts of {read} tokens: leave some out",
                prompts=MOST_PROMPTS,
                tokens=MOST_TOKENS,
                got=" + ".join(str(len(each)) for each in lists),
                read=tokens,
            )
            raise UserError(told)
        return cls("means", (layer,), lists)

    def __str__(self) -> str:
        """The text that `parse` reads."""
        if self.kind == "means":
            written = ("_".join(map(as_ids, each)) for each in self.lists)
            return f"means.{self.numbers[0]}.{'-'.join(written)}"
        if self.kind in ("unembed", "difference"):
            return f"unembed.{'-'.join(map(str, self.numbers))}"
        return f"{self.kind}.{as_ids(self.numbers)}"

    def words(self, text: Text = as_ids) -> str:
        """What it is; `text` is how tokens are written."""
        if self.kind == "means":
            first, second = (_written(each, text) for each in self.lists)
            return _(
                "the mean of the stream after layer {layer} over {first} less that over {second}",
                layer=self.numbers[0],
                first=first,
                second=second,
            )
        numbers = self.numbers
        if self.kind in ("unembed", "difference"):
            numbers = [text((token_id,)) for token_id in numbers]
        return look_up(RECIPES[self.kind][1], **dict(zip("abc", numbers, strict=False)))

    def check(self, config: ModelConfig):
        """UserError where the model has not what it names."""
        for number, (what, size) in zip(self.numbers, RECIPES[self.kind][2], strict=True):
            if number >= size(config):
                told = _("{what} run from 0 to {last}, got {got}")
                raise UserError(told.format(what=look_up(what), last=size(config) - 1, got=number))
        ids = [token_id for each in self.lists for prompt in each for token_id in prompt]
        if ids and max(ids) >= config.vocab_size:
            told = _("{what} run from 0 to {last}, got {got}")
            raise UserError(told.format(what=look_up(ID[0]), last=config.vocab_size - 1, got=max(ids)))
        longest = max((len(prompt) for each in self.lists for prompt in each), default=0)
        if longest > config.context_length:
            told = _("a run has 1 to {most} tokens, got {got}", most=config.context_length, got=longest)
            raise UserError(told)


ID = (N_("token ids"), lambda config: config.vocab_size)
LAYER = (N_("layers"), lambda config: config.num_layers)
NEURON = (N_("neurons"), lambda config: config.d_ff)
HEAD = (N_("heads"), lambda config: config.num_heads)
RANK = (N_("directions of a head"), lambda config: config.d_head)
N = "([0-9]{1,9})"
LIST = "[0-9]{1,9}(?:[._][0-9]{1,9})*"  # prompts, each the ids of its tokens
# kind -> how it is written, in words, and what its numbers count
RECIPES = {
    "unembed": (rf"unembed\.{N}", N_("the unembedding of token {a}"), (ID,)),
    "difference": (rf"unembed\.{N}-{N}", N_("the unembedding of token {a} less that of token {b}"), (ID, ID)),
    "neuron": (rf"neuron\.{N}\.{N}", N_("what neuron {b} of layer {a} writes"), (LAYER, NEURON)),
    "means": (rf"means\.{N}\.({LIST})-({LIST})", "", (LAYER,)),
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

    def what(self, config: ModelConfig, text: Text = as_ids) -> str:
        layer, name, _part = self.part()
        name = name if layer is None else _("{name} of layer {layer}", name=name, layer=layer)
        return self.said().format(
            name=name, direction=self.recipe.words(text), amount=f"{self.amount:.10g}".replace("-", "−")
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
