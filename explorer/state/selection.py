"""The selection: the elements and options that the user looks at, with the fields that views add to it."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, get_args

from model.config import ModelConfig

# Groups of views in the page's order. "story": the steps of the story; "own": of the user's own model and views.
Group = Literal["story", "whole_model", "components", "prediction", "try", "further", "own"]
GROUPS: tuple[Group, ...] = get_args(Group)
MAX_SEARCH_CHARS = 40  # characters
FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class SelectionField:
    """A field that a view adds to the selection.

    It then is part of the URL and of every request, and has a list or a text box among the view's controls.

    Attributes:
        name: in the URL; lower-case letters, digits and underscores.
        default: text or a whole number from 0; values have its type.
        label: before the list, translated on use; "" for a field without a list, which clicks set.
        values: the possible values, or a mapping of values to their texts in the list, translated on use; None for
            any value.
        options: (trace, selection) -> the (value, text) pairs of the list, where these depend on the run; a comparing
            view's gets a `Comparison` in the trace's place.
        is_free: whether any other text may be typed, too.
    """

    name: str
    default: str | int
    label: str = ""
    values: Collection[str | int] | None = None
    options: Callable[[Any, Any], list[tuple[Any, str]]] | None = None
    is_free: bool = False

    def __post_init__(self):
        if not isinstance(self.name, str) or not FIELD_NAME.fullmatch(self.name):
            raise ValueError(f"a field's name has lower-case letters, digits and underscores, got {self.name!r:.60}")
        for value in (self.default, *(self.values or ())):
            if type(value) not in (str, int) or (type(value) is int and not 0 <= value < 10**9):
                raise ValueError(f"{self.name} is text or a whole number from 0, got {value!r:.60}")
            if type(value) is not type(self.default):
                raise ValueError(f"the values of {self.name} are of one type, got {value!r:.60}")
        if self.values is not None and self.default not in self.values:
            raise ValueError(f"the default of {self.name} is one of its values, got {self.default!r:.60}")

    @property
    def texts(self) -> dict[str | int, str]:
        """The possible values with their texts, untranslated; empty for any value."""
        if isinstance(self.values, Mapping):
            return dict(self.values)
        return {value: str(value) for value in self.values or ()}

    def clamp(self, value: str | int) -> str | int:
        """Return a value of the field's type, or the nearest that is allowed."""
        if self.values is not None:
            return value if value in self.values else self.default
        return value[:MAX_SEARCH_CHARS] if self.is_free and isinstance(value, str) else value


_groups: dict[str, Group] = {}  # view -> its group
_names: dict[str, str] = {}  # view, or a former name of one in a saved URL -> view
_fields: dict[str, SelectionField] = {}


def register_view(
    name: str, group: Group, fields: Iterable[SelectionField] = (), former_names: Iterable[str] = ()
) -> None:
    """Register a view's name and fields; several views may share a field, which is one object then.

    Raises:
        ValueError: a name is taken; nothing is registered then.
    """
    names, field_by_name = dict.fromkeys((name, *former_names), name), dict(_fields)
    for view_name in names.keys() & _names.keys():
        raise ValueError(f"the name {view_name!r} is taken")
    for field in fields:
        if field_by_name.setdefault(field.name, field) is not field:
            raise ValueError(f"the name {field.name!r} is taken")
    _groups[name] = group
    _names.update(names)
    _fields.update(field_by_name)


def view_names() -> tuple[str, ...]:
    """Return the names of all views.

    Raises:
        RuntimeError: no views are registered.
    """
    if not _groups:
        raise RuntimeError("no views are registered: import explorer.views first")
    return tuple(_groups)


def resolve_tab(name: Any) -> str | None:
    """Return the view of that name or former name; None if there is none.

    Raises:
        RuntimeError: no views are registered.
    """
    return _names.get(name) if view_names() and isinstance(name, str) else None


def is_story_view(name: str) -> bool:
    """Return whether a view is a step of the story."""
    return _groups.get(name) == "story"


def registered_fields() -> tuple[SelectionField, ...]:
    """Return the fields that views added to the selection."""
    return tuple(_fields.values())


def find_field(name: str) -> SelectionField:
    """Return the field of that name.

    Raises:
        KeyError: no view declares such a field.
    """
    if name not in _fields:
        raise KeyError(f"no view declares a field {name!r}; the declared fields are {', '.join(_fields) or 'none'}")
    return _fields[name]


# Choices of the fields that are one word; fields that views declare have their own.
OWN_CHOICES = {
    "depth": ("story", "numbers", "formula", "code"),
    "first_token": ("shown", "hidden"),
    "shade": ("surprisal", "entropy", "rank"),
    "why": ("closed", "open"),
    "stand_ins": ("closed", "open"),
    "shown": ("a", "b", "difference", "both"),
}
MAX_LESSON_CHARS, MAX_REPLY_CHARS = 60, 200  # characters
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
        residual_depth: number of blocks after which the residual stream is displayed: 0 is the embedding.
        target: rank of the target token among the next tokens after `query`, 1 the likeliest.
        rival: rank of the contrast token, 0 for none.
        heads: heads selected together, as text: "1.0~4.3" is head 0 of layer 1 and head 3 of layer 4.
        window: tokens in sight around the selected ones in figures of all tokens, 0 for all.
        first_token: whether the map of heads counts attention to the first token: "shown" or "hidden".
        find: text or id of tokens to find among the next tokens.
        shade: measure that shades the tokens of the strip.
        why: whether the reasons for the target token's prediction are "open" or "closed".
        stand_ins: whether the redundant components among them are "open" or "closed".
        guess: the user's guess of the next word.
        shown: which of two runs is displayed: "a", "b", their "difference", or "both" side by side.
        lesson: name of the open lesson; "" for none.
        step: of the lesson, from 1.
        reply: to the question of a step, as "3:0.25" is to that of step 3.
        unfolded: element ids of the figures that are drawn besides a view's first ones, joined by "~"; "all" for all.
        depth: how much the page tells: "story", "numbers", "formula" or "code".
        options: the fields that views declare, as sorted (name, value) pairs without the defaults; see `option`.
    """

    view: str = "overview"
    layer: int = 0
    head: int = 0
    query: int = 0
    key: int = 0
    tap: str = "blocks.0.resid_post"
    dim: int = 0
    neuron: int = 0
    residual_depth: int = 0
    target: int = 1
    rival: int = 0
    heads: str = ""
    window: int = 0
    first_token: str = "shown"
    find: str = ""
    shade: str = "surprisal"
    why: str = "closed"
    stand_ins: str = "closed"
    guess: str = ""
    shown: str = "a"
    lesson: str = ""
    step: int = 0
    reply: str = ""
    unfolded: str = ""
    depth: str = "numbers"
    options: tuple[tuple[str, str | int], ...] = ()

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "Selection":
        """Parse a selection from an untrusted mapping, such as a URL; invalid fields are left out."""
        parsed = {}
        if (residual_depth := parse_index(values.get("depth"))) is not None:  # its name in older URLs
            values = {"residual_depth": residual_depth} | values
        for name, default in cls().as_dict().items():
            value = values.get(name)
            value = parse_index(value) if isinstance(default, int) else value
            if isinstance(value, type(default)):
                parsed[name] = value
        return cls().replace(**parsed | {"view": resolve_tab(parsed.get("view")) or cls.view})

    def option(self, name: str) -> Any:
        """Return the value of a field that a view declares.

        Raises:
            KeyError: no view declares such a field.
        """
        return dict(self.options).get(name, find_field(name).default)

    def replace(self, **changes: Any) -> "Selection":
        """Return the selection with other values of some fields, those that views declare included.

        Raises:
            KeyError: there is no such field.
        """
        own = {name: value for name, value in changes.items() if name in OWN_FIELDS}
        options = dict(self.options) | {name: value for name, value in changes.items() if name not in own}
        pairs = sorted((name, value) for name, value in options.items() if value != find_field(name).default)
        return replace(self, **own, options=tuple(pairs))

    def clamp_to_trace(self, trace: TraceLike) -> "Selection":
        """Return the nearest selection that exists in a trace."""

        def clamp(value, size):
            return max(0, min(value, size - 1))

        def exists(layer, head):
            return layer < trace.config.num_layers and head < trace.config.num_heads

        query = clamp(self.query, len(trace))
        tap = self.tap if self.tap in trace.values else LAYER.sub(f"blocks.{trace.config.num_layers - 1}.", self.tap)
        tap = tap if tap in trace.values else next(iter(trace.values))
        target = max(1, clamp(self.target, trace.config.vocab_size + 1))
        rival = clamp(self.rival, trace.config.vocab_size + 1)
        return self.replace(
            layer=clamp(self.layer, trace.config.num_layers),
            head=clamp(self.head, trace.config.num_heads),
            heads=SEPARATOR.join(f"{layer}.{head}" for layer, head in self.selected_heads if exists(layer, head)),
            query=query,
            key=clamp(self.key, query + 1),
            tap=tap,
            dim=clamp(self.dim, trace.shape(tap)[-1]),
            neuron=clamp(self.neuron, trace.config.d_ff),
            residual_depth=clamp(self.residual_depth, trace.config.num_layers + 1),
            target=target,
            rival=0 if rival == target else rival,  # a logit less itself is 0
            find=self.find[:MAX_SEARCH_CHARS],
            guess=self.guess[:MAX_SEARCH_CHARS],
            lesson=self.lesson[:MAX_LESSON_CHARS],
            step=self.step if self.lesson else 0,
            reply=self.reply[:MAX_REPLY_CHARS] if self.lesson else "",
            **{name: self.valid_choice(name, choices) for name, choices in OWN_CHOICES.items()},
            **{field.name: field.clamp(self.option(field.name)) for field in registered_fields()},
        )

    @property
    def current_reply(self) -> str | None:
        """Reply to the question of the current step; None for none."""
        step, is_one, reply = self.reply.partition(":")
        return reply if is_one and step == str(self.step) else None

    @property
    def is_story(self) -> bool:
        """True if the story is open: a step of it, or a view that is told as one."""
        return self.depth == "story" or is_story_view(self.view)

    def is_unfolded(self, element_id: str) -> bool:
        """Return whether a figure is drawn that is not among its view's first: all are in a lesson."""
        return bool(self.lesson) or self.unfolded == "all" or element_id in self.unfolded.split(SEPARATOR)

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
        """Return all fields by name, as in a URL: those of this class, then those that views declare."""
        own = {name: getattr(self, name) for name in OWN_FIELDS}
        return own | {field.name: self.option(field.name) for field in registered_fields()}


OWN_FIELDS = tuple(field.name for field in fields(Selection) if field.name != "options")


def field_choices() -> dict[str, tuple[str | int, ...]]:
    """Return the choices of every field that has some, by the field's name."""
    return OWN_CHOICES | {field.name: tuple(field.values) for field in registered_fields() if field.values is not None}


def parse_index(value: Any) -> int | None:
    """Parse a whole number of at most nine digits from an int or text; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 10**9 else None
