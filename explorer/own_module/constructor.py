"""Call the constructor of somebody's module with what is known of its arguments.

They are known by name: from the command line, from the settings in the file of weights, and from the shapes of the
weights. A config may be a dataclass, a pydantic model, an attrs class, a NamedTuple, a plain class, or a dictionary.
"""

import argparse
import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import nn

from explorer.language import _
from explorer.own_module.described import CONTEXT, DEFAULT_CONTEXT, HEADS, KV_HEADS, THETA
from explorer.state.errors import UserError

ALIASES = {  # what arguments that are sizes are called
    "vocab_size": ("vocab_size", "n_vocab", "vocab", "num_tokens", "vocabulary_size", "num_embeddings"),
    "context_length": (*CONTEXT, "max_len", "max_length", "max_context_length", "context_window", "sequence_length"),
    "d_model": (
        *("d_model", "n_embd", "hidden_size", "dim", "embed_dim", "width", "emb_dim", "n_embed", "d_embed"),
        *("embed_size", "embedding_dim", "emb_size", "model_dim"),
    ),
    "num_layers": (
        *("num_layers", "n_layer", "n_layers", "num_hidden_layers", "depth", "n_blocks", "num_blocks", "num_layer"),
    ),
    "num_heads": HEADS,
    "num_kv_heads": KV_HEADS,
    "head_dim": ("head_dim", "d_head", "head_size", "dim_head", "d_k"),
    "d_ff": (
        *("d_ff", "intermediate_size", "ffn_dim", "hidden_dim", "d_hidden", "dff", "mlp_dim", "ff_dim", "d_mlp"),
        *("ffn_hidden", "dim_feedforward", "feedforward_dim", "n_inner", "ffn_hidden_dim", "mlp_hidden_dim"),
    ),
    "rope_theta": THETA,
}
SIZE_OF = {alias: size for size, aliases in ALIASES.items() for alias in aliases}
CONFIG_NAME = re.compile(r"config|cfg|^conf$|args|hparams|hps|params|settings|^opts?$|^c$", re.IGNORECASE)
DICTIONARIES = dict, Mapping, typing.Mapping, typing.MutableMapping, typing.Any, argparse.Namespace, SimpleNamespace
MISSING = object()


class UnknownArgument(UserError, AttributeError, KeyError):
    """Nothing tells an argument; code that asks a config for it with a default goes on."""

    __str__ = UserError.__str__


class Settings:
    """What is known of a constructor's arguments.

    Args:
        given: on the command line, which counts before anything else.
        sources: (where they stand, name -> value) of the file of weights, the likeliest first.
        sizes: by our names, as the shapes of the weights tell them, or small ones.
        defaults: of the file of code: those of no weights, asked last.
        has_weights: whether heads must be told: no shape says how many they are, and weights were trained with some.
        shapes_first: whether shapes count before what the file says.

    Attributes:
        used: by our names the sizes that were asked for, with their values.
        sources_used: (our name, where it stood) of those that came from the file.
    """

    def __init__(
        self,
        given: Mapping[str, Any],
        sources: Iterable[tuple[str, Mapping[str, Any]]] = (),
        sizes: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
        has_weights: bool = False,
        shapes_first: bool = False,
    ):
        self.given, self.sources, self.sizes = dict(given), tuple(sources), dict(sizes or {})
        self.defaults, self.has_weights, self.shapes_first = dict(defaults or {}), has_weights, shapes_first
        self.used: dict[str, Any] = {}
        self.sources_used: list[tuple[str, str]] = []

    def find(self, name: str) -> Any:
        """The value of an argument, MISSING where nothing tells it.

        Raises:
            UnknownArgument: it says how many heads there are, which is not to be guessed.
        """
        size = SIZE_OF.get(name)
        value = self._find(name, size)
        if value is MISSING and size == "num_heads" and self.has_weights:
            raise UnknownArgument(
                _(
                    "It needs {name}: no shape of the weights says how many heads there are, nor does their file. "
                    "Give it, as in --config num_heads=…",
                    name=name,
                )
            )
        if size and value is not MISSING:
            self.used.setdefault(size, value)
        return value

    def _find(self, name: str, size: str | None) -> Any:
        if name in self.given:
            return self.given[name]
        if size and (same := [value for alias, value in self.given.items() if SIZE_OF.get(alias) == size]):
            return same[0]
        if self.shapes_first and size in self.sizes:
            return self.sizes[size]
        for where, values in self.sources:
            if name in values and not (size in ("num_heads", "d_model") and values[name] is None):
                self.sources_used.append((size or name, where))
                return values[name]
        if size in self.sizes:
            return self.sizes[size]
        for where, values in self.sources:
            if size and (same := [value for alias, value in values.items() if SIZE_OF.get(alias) == size]):
                self.sources_used.append((size, where))
                return same[0]
        if size in ("num_kv_heads", "head_dim") and (heads := self._heads()):
            rows = self.sizes.get("q_rows"), self.sizes.get("k_rows")
            if size == "head_dim" and rows[0] and rows[0] % heads == 0:
                return rows[0] // heads
            if size == "num_kv_heads" and all(rows) and rows[1] * heads % rows[0] == 0:
                return rows[1] * heads // rows[0]
        return self.defaults.get(name, MISSING) if size != "num_heads" or not self.has_weights else MISSING

    def _heads(self) -> int | None:
        value = self._find("num_heads", "num_heads")
        return value if isinstance(value, int) and value > 0 else None

    def ask(self, name: str) -> UnknownArgument:
        return UnknownArgument(_("It needs {name}: give it, as in --config {name}=…", name=name))


class AnyConfig(dict):
    """A config of any kind: items and attributes are what is known of them as soon as they are asked for."""

    def __init__(self, settings: Settings):
        super().__init__()
        object.__setattr__(self, "_settings", settings)
        templates = [settings.given, *(values for _where, values in settings.sources), settings.defaults]
        for name in next((values for values in templates if count_sizes(values) > 1), ()):
            self[name]  # what is handed on as **config has to be there

    def __missing__(self, name: str) -> Any:
        value = self._settings.find(name)
        if value is MISSING and SIZE_OF.get(name) == "context_length":
            value = DEFAULT_CONTEXT
        if value is MISSING:
            raise self._settings.ask(name)
        self[name] = value
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and self._settings.find(name) is not MISSING)

    def get(self, name: str, default: Any = None) -> Any:
        if name in self:
            return self[name]
        return default

    def __deepcopy__(self, memo: dict) -> "AnyConfig":
        copied = AnyConfig(self._settings)
        copied.update(self)
        return copied


def construct(constructor: Callable, source: ModuleType, settings: Settings) -> Any:
    """What a class or a function makes of what is known.

    Raises:
        UnknownArgument: nothing tells an argument that has no default, or how many heads there are.
    """
    return constructor(**_arguments(constructor, source, settings))


def _arguments(constructor: Callable, source: ModuleType, settings: Settings) -> dict[str, Any]:
    found = {}
    for name, parameter in _parameters(constructor).items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = _argument(name, parameter, source, settings)
        if value is not MISSING:
            found[name] = value
        elif parameter.default is parameter.empty:
            raise settings.ask(name)
    return found


def _argument(name: str, parameter: inspect.Parameter, source: ModuleType, settings: Settings) -> Any:
    is_required = parameter.default is parameter.empty
    if name == "device":  # of training, which another machine did
        return settings.given.get(name, "cpu" if is_required or isinstance(parameter.default, str) else MISSING)
    if name == "dtype":
        return settings.given.get(name, torch.float32 if is_required else MISSING)
    kind = _config_class(name, parameter, source)
    if kind is not None:
        value = settings.given.get(name)
        if isinstance(value, Mapping):
            settings.given |= value
        elif isinstance(value, kind):
            return value
        elif name in settings.given:
            raise UserError(
                _("{name} is a config of its own: give what is in it by name, as in --config num_heads=…", name=name)
            )
        return _config(kind, source, settings)
    value, size = settings.find(name), SIZE_OF.get(name)
    if value is MISSING and is_required and size == "context_length":
        return DEFAULT_CONTEXT
    if value is MISSING and size == "head_dim" and settings.has_weights and isinstance(parameter.default, int):
        raise settings.ask(name)  # it tells how many heads there are, in its way
    return value


def _parameters(constructor: Callable) -> dict[str, inspect.Parameter]:
    """By name; what a class hands on as **kwargs is what its base takes."""
    try:
        signature = inspect.signature(constructor, eval_str=True)
    except (
        NameError,
        TypeError,
        SyntaxError,
        AttributeError,
    ):  # of an annotation that is there for type checkers alone
        signature = inspect.signature(constructor)
    own = dict(signature.parameters)
    if isinstance(constructor, type) and any(each.kind is each.VAR_KEYWORD for each in own.values()):
        base = constructor.__mro__[1]
        return own if base in (object, nn.Module) else _parameters(base) | own
    return own


def _config_class(name: str, parameter: inspect.Parameter, source: ModuleType) -> type | None:
    """The class of config that an argument wants, AnyConfig where any will do; None where it wants none."""
    for kind in _classes_in(parameter.annotation, source):
        if kind in DICTIONARIES:
            return AnyConfig if CONFIG_NAME.search(name) else None
        if is_config_class(kind):
            return AnyConfig if typing.is_typeddict(kind) else kind
        if isinstance(kind, type) and kind not in (object, type(None)) and "DictConfig" in kind.__name__:
            return AnyConfig
    if is_config_class(type(parameter.default)):
        return type(parameter.default)
    is_typed = parameter.annotation is not parameter.empty and not isinstance(parameter.annotation, str)
    if is_typed or not CONFIG_NAME.search(name) or parameter.default not in (parameter.empty, None):
        return None
    known = [each for each in vars(source).values() if isinstance(each, type) and is_config_class(each)]
    known = [each for each in known if _count_sizes_of(each)]
    return max(known, key=_count_sizes_of) if known else AnyConfig


def _classes_in(annotation: Any, source: ModuleType) -> list[Any]:
    """The classes that an annotation names, of "Config | None" both."""
    if isinstance(annotation, str):
        names = re.findall(r"[A-Za-z_]\w*", annotation)
        return [found for name in names if (found := getattr(source, name, None)) is not None]
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType, typing.Annotated):
        return [each for part in typing.get_args(annotation) for each in _classes_in(part, source)]
    return [] if annotation is inspect.Parameter.empty else [origin or annotation]


def is_config_class(kind: Any) -> bool:
    """Return whether a class is one that holds settings by name."""
    if not isinstance(kind, type) or issubclass(kind, nn.Module) or kind.__module__ in ("builtins", "typing"):
        return False
    if dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__") or hasattr(kind, "model_fields"):
        return True
    if hasattr(kind, "_fields") and issubclass(kind, tuple) or typing.is_typeddict(kind):
        return True
    return bool(CONFIG_NAME.search(kind.__name__)) and not issubclass(kind, dict | Exception)


def count_sizes(names: Iterable[str]) -> int:
    """Return how many different sizes are among some names."""
    return len({SIZE_OF[name] for name in names if name in SIZE_OF})


def _count_sizes_of(kind: type) -> int:
    try:
        return count_sizes({*_parameters(kind), *vars(kind)})
    except (TypeError, ValueError):
        return 0


def _config(kind: type, source: ModuleType, settings: Settings) -> Any:
    if kind is AnyConfig:
        return AnyConfig(settings)
    made = construct(kind, source, settings)
    if not (
        dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__") or hasattr(kind, "model_fields")
    ) and not (isinstance(made, tuple)):
        for name in [
            name for name in dir(made) if not name.startswith("_") and not callable(getattr(made, name, None))
        ]:
            value = settings.find(name)
            if value is not MISSING and not isinstance(getattr(type(made), name, None), property):
                setattr(made, name, value)
    return made
