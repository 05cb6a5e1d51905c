"""What the person is looking at."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from model.config import ModelConfig

FULL_TABS = (
    "overview",
    "tokens",
    "attention",
    "positions",
    "kv_cache",
    "feed_forward",
    "residual",
    "prediction",
    "activations",
    "experiments",
    "directions",
    "compare",
    "patching",
    "training",
)
OWN_TABS = ("own_module",)  # where the app was started with somebody's own module
SIMPLE_TABS = ("pieces", "looks", "guesses")  # of the simple page
TABS = FULL_TABS + SIMPLE_TABS
FORMER_TABS = {"rope": "positions"}  # names in addresses that people saved
# What fields of one word may hold; what each stands for, `analysis` says under the same names.
WORDS = {
    "pattern": ("weight", "without_first", "moved", "layer_mean", "layer_max", "chosen_mean", "chosen_max"),
    "head_score": ("previous_token", "first_token", "self", "duplicate_token", "induction", "spread"),
    "lens": ("probability", "target", "rank", "entropy"),
    "first_token": ("shown", "hidden"),
    "shade": ("surprisal", "entropy", "rank"),
    "why": ("closed", "open"),
    "stand_ins": ("closed", "open"),
    "shown": ("a", "b", "difference"),
    "clean_run": ("b", "a"),
    "metric": ("logit_difference", "log_probability", "probability"),
    "patch_direction": ("denoise", "noise"),
    "patch_position": ("resid_pre", "attn.out", "ffn.out"),
    "patch_head": ("attn.z", "attn.q", "attn.k", "attn.v", "attn.pattern"),
    "receiver": ("logits", "q", "k", "v"),
}
MOST_FOUND_BY, MOST_LESSON, MOST_REPLY = 40, 60, 200  # characters
BETWEEN, HEAD, MOST_HEADS = "~", re.compile(r"([0-9]{1,4})\.([0-9]{1,4})"), 256
LAYER = re.compile(r"^blocks\.\d+\.")


class Captured(Protocol):
    """Of a trace, what a selection must fit."""

    config: ModelConfig
    values: Mapping[str, Any]

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Selection:
    """One thing shared by all views, and by the URL.

    Attributes:
        view: name of the open tab.
        layer, head: the chosen attention head.
        query: the selected token: the position that looks back, and whose next token is predicted.
        key: the position looked at; never after `query`.
        tap: name of the captured value shown by itself.
        dim: index into that value's last axis.
        neuron: of the chosen layer's feed-forward.
        depth: blocks after which the residual stream is looked at: 0 is the embedding.
        target: the token whose prediction is explained, by its rank among the next tokens after `query`, 1 the
            likeliest.
        rival: the rank of the token it is compared with, 0 for none.
        pattern: which pattern the large attention pattern shows.
        heads: chosen heads to be seen together, as text: "1.0~4.3" is head 0 of layer 1 and head 3 of layer 4.
        window: tokens in sight around the chosen ones in pictures of all tokens, 0 for all.
        head_score: which score the map of heads shows.
        first_token: whether the map of heads counts attention to the first token: "shown" or "hidden".
        lens: by what the logit lens is coloured.
        find: text or id of tokens that are looked for among the next tokens.
        shade: by what the tokens of the strip are shaded.
        why: whether it is told why the explained token was predicted: "open" or "closed".
        stand_ins: likewise, which parts stand in for one another there.
        guess: the word that the visitor thinks comes next.
        direction: the direction in the stream that is looked at, as text (see `Recipe`); "" for the first there is.
        shown: of two runs which one, or how they differ: "a", "b" or "difference".
        clean_run: of two runs the one whose values carry the answer; the other is the corrupted one.
        answer, wrong: texts of the right and the wrong next token after the clean one; "" as proposed.
        metric: what is measured of patched runs.
        patch_direction: which way values go in estimates and along paths: "denoise" or "noise".
        patch_position, patch_head: which values the maps by position and by head are about.
        receiver: what reads what heads send: "logits", or "q", "k" or "v" of the chosen head.
        lesson: name of the lesson that the page goes through; "" for none.
        step: of it, from 1.
        reply: to the question of a step, as "3:0.25" is to that of step 3.
    """

    view: str = "overview"
    layer: int = 0
    head: int = 0
    query: int = 0
    key: int = 0
    tap: str = "blocks.0.resid_post"
    dim: int = 0
    neuron: int = 0
    depth: int = 0
    target: int = 1
    rival: int = 0
    pattern: str = "weight"
    heads: str = ""
    window: int = 0
    head_score: str = "previous_token"
    first_token: str = "shown"
    lens: str = "probability"
    find: str = ""
    shade: str = "surprisal"
    why: str = "closed"
    stand_ins: str = "closed"
    guess: str = ""
    direction: str = ""
    shown: str = "a"
    clean_run: str = "b"
    answer: str = ""
    wrong: str = ""
    metric: str = "logit_difference"
    patch_direction: str = "denoise"
    patch_position: str = "resid_pre"
    patch_head: str = "attn.z"
    receiver: str = "logits"
    lesson: str = ""
    step: int = 0
    reply: str = ""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "Selection":
        """The selection in a mapping that anybody may have written (a URL, say); what makes no sense is left out."""
        known = {}
        for field in fields(cls):
            value = values.get(field.name)
            if field.type is int:
                value = as_index(value)
            if isinstance(value, field.type):
                known[field.name] = value
        return cls(**known | {"view": tab_named(known.get("view")) or cls.view})

    def within(self, trace: Captured) -> "Selection":
        """The nearest selection that exists in a trace."""

        def clamp(value, size):
            return max(0, min(value, size - 1))

        def exists(layer, head):
            return layer < trace.config.num_layers and head < trace.config.num_heads

        query = clamp(self.query, len(trace))
        tap = self.tap if self.tap in trace.values else LAYER.sub(f"blocks.{trace.config.num_layers - 1}.", self.tap)
        tap = tap if tap in trace.values else next(iter(trace.values))
        return replace(
            self,
            layer=clamp(self.layer, trace.config.num_layers),
            head=clamp(self.head, trace.config.num_heads),
            heads=BETWEEN.join(f"{layer}.{head}" for layer, head in self.chosen_heads if exists(layer, head)),
            query=query,
            key=clamp(self.key, query + 1),
            tap=tap,
            dim=clamp(self.dim, trace.shape(tap)[-1]),
            neuron=clamp(self.neuron, trace.config.d_ff),
            depth=clamp(self.depth, trace.config.num_layers + 1),
            target=max(1, clamp(self.target, trace.config.vocab_size + 1)),
            rival=clamp(self.rival, trace.config.vocab_size + 1),
            find=self.find[:MOST_FOUND_BY],
            guess=self.guess[:MOST_FOUND_BY],
            answer=self.answer[:MOST_FOUND_BY],
            wrong=self.wrong[:MOST_FOUND_BY],
            lesson=self.lesson[:MOST_LESSON],
            step=self.step if self.lesson else 0,
            reply=self.reply[:MOST_REPLY] if self.lesson else "",
            **{name: self.known(name, words) for name, words in WORDS.items()},
        )

    @property
    def reply_here(self) -> str | None:
        """The reply to the question of this very step; None for none."""
        step, is_one, reply = self.reply.partition(":")
        return reply if is_one and step == str(self.step) else None

    @property
    def chosen_heads(self) -> tuple[tuple[int, int], ...]:
        """(layer, head) of each of `heads` that is written as it should be."""
        found = (HEAD.fullmatch(text) for text in self.heads.split(BETWEEN)[:MOST_HEADS])
        return tuple(dict.fromkeys((int(match[1]), int(match[2])) for match in found if match))

    def known(self, name: str, words: Collection[str]) -> str:
        """A field that holds one of some words, or its default where it holds another."""
        value = getattr(self, name)
        return value if value in words else getattr(Selection, name)

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def tab_named(name: Any) -> str | None:
    """The tab of that name or former name; None where there is none."""
    name = FORMER_TABS.get(name, name) if isinstance(name, str) else None
    return name if name in (*TABS, *OWN_TABS) else None


def as_index(value: Any) -> int | None:
    """A whole number of at most nine digits, written as an int or as text; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 10**9 else None
