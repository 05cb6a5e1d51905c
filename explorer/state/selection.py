"""The selection: the elements and options that the user looks at."""

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
OWN_TABS = ("own_module",)  # if the app was started with the owner's own module
SIMPLE_TABS = ("pieces", "looks", "guesses")  # of the simple page
TABS = FULL_TABS + SIMPLE_TABS
FORMER_TABS = {"rope": "positions"}  # names in addresses that people saved
# Choices of the fields that are one word; `analysis` defines them under the same names.
FIELD_CHOICES = {
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
MAX_SEARCH_CHARS, MAX_LESSON_CHARS, MAX_REPLY_CHARS = 40, 60, 200  # characters
SEPARATOR, HEAD, MAX_HEADS = "~", re.compile(r"([0-9]{1,4})\.([0-9]{1,4})"), 256
LAYER = re.compile(r"^blocks\.\d+\.")


class TraceLike(Protocol):
    """The part of a trace that a selection must fit."""

    config: ModelConfig
    values: Mapping[str, Any]

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Selection:
    """The selection, shared by all views and the URL.

    Attributes:
        view: name of the open tab.
        layer, head: the selected attention head.
        query: the selected token: the query position, whose next token is predicted.
        key: the key position; never after `query`.
        tap: name of the captured value displayed by itself.
        dim: index into that value's last axis.
        neuron: of the selected layer's feed-forward.
        depth: number of blocks after which the residual stream is displayed: 0 is the embedding.
        target: rank of the target token among the next tokens after `query`, 1 the likeliest.
        rival: rank of the contrast token, 0 for none.
        pattern: which pattern the large attention pattern displays.
        heads: heads selected together, as text: "1.0~4.3" is head 0 of layer 1 and head 3 of layer 4.
        window: tokens in sight around the selected ones in figures of all tokens, 0 for all.
        head_score: score of the map of heads.
        first_token: whether the map of heads counts attention to the first token: "shown" or "hidden".
        lens: measure that colours the logit lens.
        find: text or id of tokens to find among the next tokens.
        shade: measure that shades the tokens of the strip.
        why: whether the reasons for the target token's prediction are "open" or "closed".
        stand_ins: whether the redundant components among them are "open" or "closed".
        guess: the user's guess of the next word.
        direction: the direction in the stream, as text (see `DirectionSpec`); "" for the first there is.
        shown: which of two runs is displayed, or their difference: "a", "b" or "difference".
        clean_run: which of two runs is the clean one; the other is the corrupted one.
        answer, wrong: texts of the right and the wrong next token after the clean one; "" for the proposed ones.
        metric: of patched runs.
        patch_direction: direction of patching in estimates and along paths: "denoise" or "noise".
        patch_position, patch_head: components of the maps by position and by head.
        receiver: of path patching: "logits", or "q", "k" or "v" of the selected head.
        lesson: name of the open lesson; "" for none.
        step: of the lesson, from 1.
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
        """Parse a selection from an untrusted mapping, such as a URL; invalid fields are left out."""
        parsed = {}
        for field in fields(cls):
            value = values.get(field.name)
            if field.type is int:
                value = parse_index(value)
            if isinstance(value, field.type):
                parsed[field.name] = value
        return cls(**parsed | {"view": resolve_tab(parsed.get("view")) or cls.view})

    def clamp_to_trace(self, trace: TraceLike) -> "Selection":
        """Return the nearest selection that exists in a trace."""

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
            heads=SEPARATOR.join(f"{layer}.{head}" for layer, head in self.selected_heads if exists(layer, head)),
            query=query,
            key=clamp(self.key, query + 1),
            tap=tap,
            dim=clamp(self.dim, trace.shape(tap)[-1]),
            neuron=clamp(self.neuron, trace.config.d_ff),
            depth=clamp(self.depth, trace.config.num_layers + 1),
            target=max(1, clamp(self.target, trace.config.vocab_size + 1)),
            rival=clamp(self.rival, trace.config.vocab_size + 1),
            find=self.find[:MAX_SEARCH_CHARS],
            guess=self.guess[:MAX_SEARCH_CHARS],
            answer=self.answer[:MAX_SEARCH_CHARS],
            wrong=self.wrong[:MAX_SEARCH_CHARS],
            lesson=self.lesson[:MAX_LESSON_CHARS],
            step=self.step if self.lesson else 0,
            reply=self.reply[:MAX_REPLY_CHARS] if self.lesson else "",
            **{name: self.valid_choice(name, choices) for name, choices in FIELD_CHOICES.items()},
        )

    @property
    def current_reply(self) -> str | None:
        """Reply to the question of the current step; None for none."""
        step, is_one, reply = self.reply.partition(":")
        return reply if is_one and step == str(self.step) else None

    @property
    def selected_heads(self) -> tuple[tuple[int, int], ...]:
        """The valid heads of `heads`, each as (layer, head)."""
        matches = (HEAD.fullmatch(text) for text in self.heads.split(SEPARATOR)[:MAX_HEADS])
        return tuple(dict.fromkeys((int(match[1]), int(match[2])) for match in matches if match))

    def valid_choice(self, name: str, choices: Collection[str]) -> str:
        """Return the value of a field if it is one of the choices, or else the field's default."""
        value = getattr(self, name)
        return value if value in choices else getattr(Selection, name)

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def resolve_tab(name: Any) -> str | None:
    """Return the tab of that name or former name; None if there is none."""
    name = FORMER_TABS.get(name, name) if isinstance(name, str) else None
    return name if name in (*TABS, *OWN_TABS) else None


def parse_index(value: Any) -> int | None:
    """Parse a whole number of at most nine digits from an int or text; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 10**9 else None
