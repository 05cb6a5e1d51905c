"""Settings of a user's module: its config, inferred from weights and attributes, and the arguments of its constructor.

Arguments are known by name: from the command line, from the settings in the weights file, and from the shapes of
the weights. A config may be a dataclass, a pydantic model, an attrs class, a NamedTuple, a plain class, or a
dictionary.
"""

import argparse
import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import nn

from explorer.diagnosis.match_weights import MatchedModule, WeightMatch
from explorer.errors import UserError
from explorer.translations import _
from model.config import ModelConfig
from model.errors import ModelError

HEADS = (
    *("num_heads", "n_heads", "n_head", "num_attention_heads", "nhead", "heads", "num_q_heads", "n_q_heads"),
    *("attn_heads", "num_attn_heads", "n_attn_heads", "num_query_heads"),
)
KV_HEADS = (
    *("num_kv_heads", "n_kv_heads", "n_kv_head", "num_key_value_heads", "kv_heads", "n_query_groups", "num_kv_groups"),
    *("n_kv", "n_kv_groups", "num_query_groups"),
)
CONTEXT = (
    *("context_length", "block_size", "max_position_embeddings", "max_seq_len", "n_positions", "seq_len", "n_ctx"),
    *("max_seq_length", "seq_length", "context_size", "ctx_len", "context_len"),
)
EPSILON = "eps", "variance_epsilon", "epsilon", "norm_eps"
THETA = "rope_theta", "theta", "base", "rope_base"
ACTIVATIONS = {"relu": "relu", "gelutanh": "gelu_tanh", "newgelu": "gelu_tanh", "gelu": "gelu"}
DEFAULT_CONTEXT = 256
WIDTHS = 32, 64, 16, 128, 8, 4, 2, 256


def candidate_configs(
    module: nn.Module, match: WeightMatch, known_fields: Mapping[str, Any] | None = None
) -> Iterator[ModelConfig]:
    """Yield configs that the module may have, the likeliest first.

    Args:
        known_fields: fields of the config that are known.

    Raises:
        UserError: its weights are not those of a decoder-only transformer.
    """
    known_fields = dict(known_fields or {})
    inferred = _from_shapes(module, match) | known_fields
    own_heads = len(match.matched_modules["blocks.0.attn.q_proj"].heads)
    heads = known_fields.get("num_heads") or own_heads or find_attribute(module, HEADS)
    q_rows, k_rows = (match.matched_modules[f"blocks.0.attn.{name}_proj"].weight.shape[0] for name in "qk")
    counts = [heads] if heads else [q_rows // width for width in _head_widths(q_rows)]
    layouts = ("half_split", "adjacent") if match.name_table in ("llama", "order") else ("adjacent", "half_split")
    gated = inferred["ffn"] == "swiglu"
    activations = (
        ("swiglu", "geglu") if gated else (inferred["ffn"], *{"gelu", "gelu_tanh", "relu"} - {inferred["ffn"]})
    )
    if "ffn" in known_fields:
        activations = (known_fields["ffn"],)
    positions = ("rope", "sinusoidal", "none")
    if inferred["position"] == "learned" or "position" in known_fields:
        positions = (inferred["position"],)
    elif inferred["norm"] == "layernorm" and not gated:
        positions = ("sinusoidal", "rope", "none")
    for count, position, ffn, layout in product(counts, positions, activations, layouts):
        if position != "rope" and layout != layouts[0]:
            continue
        sizes = {"num_heads": count, "position": position, "ffn": ffn, "rope_layout": layout}
        if k_rows != q_rows:
            sizes["num_kv_heads"] = max(1, k_rows * count // q_rows)
            if not heads and k_rows * count % q_rows:
                continue
        if q_rows != inferred["d_model"] and q_rows % count == 0:
            sizes["head_dim"] = q_rows // count
        try:
            yield ModelConfig(**inferred | sizes | known_fields)
        except ModelError as error:
            if heads:
                raise UserError(_("The module’s sizes make no model: {why}", why=error)) from None


def _from_shapes(module: nn.Module, match: WeightMatch) -> dict[str, Any]:
    matched_modules = match.matched_modules
    required = [f"blocks.0.attn.{name}_proj" for name in "qkvo"] + ["blocks.0.ffn.up_proj", "blocks.0.ffn.down_proj"]
    for name in ("token_embedding", *required):
        if name not in matched_modules:
            raise UserError(
                _(
                    "No weight of the module was recognized as {name}: it is not a decoder-only transformer of "
                    "attention and feed-forward, or its names need a table (names=, --names).",
                    name=name,
                )
            )
    vocab_size, d_model = matched_modules["token_embedding"].weight.shape
    positions = matched_modules.get("position_embedding")
    norm = _norm_module(module, match)
    is_layernorm = norm is not None and ("layernorm" in type(norm).__name__.lower()) and not _is_rms(norm)
    if any(matched.bias is not None for name, matched in matched_modules.items() if "norm" in name):
        is_layernorm = True
    config = {
        "vocab_size": vocab_size,
        "context_length": _context_length(module, positions),
        "d_model": d_model,
        "num_layers": match.num_layers,
        "d_ff": matched_modules["blocks.0.ffn.up_proj"].weight.shape[0],
        "norm": "layernorm" if is_layernorm else "rmsnorm",
        "norm_eps": _find_number(norm, EPSILON, 1) or 1e-5,
        "position": "learned" if positions else "rope",
        "rope_theta": _theta(module),
        "ffn": "swiglu" if "blocks.0.ffn.gate_proj" in matched_modules else _activation(module),
        "bias": matched_modules["blocks.0.attn.o_proj"].bias is not None,
        "qkv_bias": matched_modules["blocks.0.attn.q_proj"].bias is not None,
        "unembedding_bias": "lm_head" in matched_modules and matched_modules["lm_head"].bias is not None,
        "tie_embeddings": _is_tied(match),
        "qk_norm": "blocks.0.attn.q_norm" in matched_modules,
    }
    config["unbiased_qkv"] = config["bias"] and not config["qkv_bias"]
    has_ffn_bias = any(matched_modules[f"blocks.0.ffn.{name}_proj"].bias is not None for name in ("up", "down"))
    config["ffn_bias"] = None if has_ffn_bias == config["bias"] else has_ffn_bias
    return config


def _head_widths(rows: int) -> list[int]:
    """Return the possible head widths, the usual ones first."""
    divisors = [width for width in range(rows, 0, -1) if rows % width == 0]
    return sorted(divisors, key=lambda width: WIDTHS.index(width) if width in WIDTHS else len(WIDTHS))


def _context_length(module: nn.Module, positions: MatchedModule | None) -> int:
    """Return the context length: the rows of learned positions, an attribute, or the rows of a 2-D buffer."""
    if positions is not None:
        return len(positions.weight)
    if length := find_attribute(module, CONTEXT):
        return int(length)
    tables = [len(table) for table in module.buffers() if table.ndim == 2 and table.is_floating_point()]
    return min(tables, default=DEFAULT_CONTEXT)


def _is_tied(match: WeightMatch) -> bool:
    if "lm_head" not in match.matched_modules:
        return True
    embedding, unembedding = match.matched_modules["token_embedding"].weight, match.matched_modules["lm_head"].weight
    return embedding.data_ptr() == unembedding.data_ptr() and embedding.shape == unembedding.shape


def _norm_module(module: nn.Module, match: WeightMatch) -> nn.Module | None:
    norms = [
        match.matched_modules[name] for name in ("blocks.0.attn_norm", "final_norm") if name in match.matched_modules
    ]
    return module.get_submodule(norms[0].module) if norms and norms[0].module else None


def _is_rms(norm: nn.Module) -> bool:
    return "rms" in type(norm).__name__.lower()


def _activation(module: nn.Module) -> str:
    names = [type(submodule).__name__.lower() for submodule in module.modules()]
    if any(isinstance(submodule, nn.GELU) and submodule.approximate == "tanh" for submodule in module.modules()):
        return "gelu_tanh"
    matches = (
        activation for class_name, activation in ACTIVATIONS.items() if any(class_name in name for name in names)
    )
    return next(matches, "gelu")


def _theta(module: nn.Module) -> float:
    config = getattr(module, "config", None)
    settings = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
    if isinstance(settings, dict) and settings.get("rope_theta"):
        return float(settings["rope_theta"])
    return float(find_attribute(module, THETA) or 10000.0)


def find_attribute(module: nn.Module, names: Sequence[str]) -> Any:
    """Return the first positive number with one of the names on the module, its config, or a submodule."""
    for owner in (module, getattr(module, "config", None), *module.modules()):
        if (value := _find_number(owner, names, float("inf"))) is not None:
            return value
    return None


def _find_number(owner: Any, names: Sequence[str], limit: float) -> Any:
    for name in names:
        value = owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < limit:
            return value
    return None


def with_context(config: ModelConfig, length: int) -> ModelConfig:
    """Return the config with a context of at least `length` tokens, unless positions are learned."""
    if config.position == "learned" or config.context_length >= length:
        return config
    return dataclasses.replace(config, context_length=length)


ALIASES = {  # aliases of sizes in other code's arguments
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
SIZE_BY_ALIAS = {alias: size for size, aliases in ALIASES.items() for alias in aliases}
CONFIG_NAME = re.compile(r"config|cfg|^conf$|args|hparams|hps|params|settings|^opts?$|^c$", re.IGNORECASE)
DICTIONARIES = dict, Mapping, typing.Mapping, typing.MutableMapping, typing.Any, argparse.Namespace, SimpleNamespace
MISSING = object()


class UnknownArgumentError(UserError, AttributeError, KeyError):
    """A required argument is unknown. Code that reads a config with a default continues."""

    __str__ = UserError.__str__


class ConstructorSettings:
    """The known values of a constructor's arguments.

    Args:
        arguments: from the command line; they take precedence.
        sources: (where they are, name -> value) from the weights file, the likeliest first.
        sizes: by our names, inferred from the shapes of the weights, or small defaults.
        defaults: from the Python file; used last.
        has_weights: whether the number of heads must be known: shapes do not determine it, and the weights depend
            on it.
        shapes_first: whether shapes take precedence over the file's settings.

    Attributes:
        used: the sizes requested, by our names, with their values.
        sources_used: (our name, where it was) of those that came from the file.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        sources: Iterable[tuple[str, Mapping[str, Any]]] = (),
        sizes: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
        has_weights: bool = False,
        shapes_first: bool = False,
    ):
        self.arguments, self.sources, self.sizes = dict(arguments), tuple(sources), dict(sizes or {})
        self.defaults, self.has_weights, self.shapes_first = dict(defaults or {}), has_weights, shapes_first
        self.used: dict[str, Any] = {}
        self.sources_used: list[tuple[str, str]] = []

    def find(self, name: str) -> Any:
        """Return the value of an argument; MISSING where it is unknown.

        Raises:
            UnknownArgumentError: it is the number of heads, which must not be guessed.
        """
        size = SIZE_BY_ALIAS.get(name)
        value = self._find(name, size)
        if value is MISSING and size == "num_heads" and self.has_weights:
            raise UnknownArgumentError(
                _(
                    "It needs {name}: neither the weights nor their file determine the number of heads. Set it, as "
                    "in --config num_heads=…",
                    name=name,
                )
            )
        if size and value is not MISSING:
            self.used.setdefault(size, value)
        return value

    def _find(self, name: str, size: str | None) -> Any:
        if name in self.arguments:
            return self.arguments[name]
        if size and (same := [value for alias, value in self.arguments.items() if SIZE_BY_ALIAS.get(alias) == size]):
            return same[0]
        if self.shapes_first and size in self.sizes:
            return self.sizes[size]
        for source, values in self.sources:
            if name in values and not (size in ("num_heads", "d_model") and values[name] is None):
                self.sources_used.append((size or name, source))
                return values[name]
        if size in self.sizes:
            return self.sizes[size]
        for source, values in self.sources:
            if size and (same := [value for alias, value in values.items() if SIZE_BY_ALIAS.get(alias) == size]):
                self.sources_used.append((size, source))
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

    def missing_error(self, name: str) -> UnknownArgumentError:
        """Return the error for a required argument that is unknown."""
        return UnknownArgumentError(_("It needs {name}: give it, as in --config {name}=…", name=name))


class ConfigStandIn(dict):
    """A config of any kind: items and attributes are looked up in the settings when they are read."""

    def __init__(self, settings: ConstructorSettings):
        super().__init__()
        object.__setattr__(self, "_settings", settings)
        templates = [settings.arguments, *(values for _where, values in settings.sources), settings.defaults]
        for name in next((values for values in templates if count_sizes(values) > 1), ()):
            self[name]  # must exist to be passed on as **config

    def __missing__(self, name: str) -> Any:
        value = self._settings.find(name)
        if value is MISSING and SIZE_BY_ALIAS.get(name) == "context_length":
            value = DEFAULT_CONTEXT
        if value is MISSING:
            raise self._settings.missing_error(name)
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

    def __deepcopy__(self, memo: dict) -> "ConfigStandIn":
        copied = ConfigStandIn(self._settings)
        copied.update(self)
        return copied


def construct(constructor: Callable, source: ModuleType, settings: ConstructorSettings) -> Any:
    """Call a class or a function with the known arguments.

    Raises:
        UnknownArgumentError: a required argument or the number of heads is unknown.
    """
    return constructor(**_arguments(constructor, source, settings))


def _arguments(constructor: Callable, source: ModuleType, settings: ConstructorSettings) -> dict[str, Any]:
    arguments = {}
    for name, parameter in _parameters(constructor).items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = _argument(name, parameter, source, settings)
        if value is not MISSING:
            arguments[name] = value
        elif parameter.default is parameter.empty:
            raise settings.missing_error(name)
    return arguments


def _argument(name: str, parameter: inspect.Parameter, source: ModuleType, settings: ConstructorSettings) -> Any:
    is_required = parameter.default is parameter.empty
    if name == "device":  # that of training, on another machine
        return settings.arguments.get(name, "cpu" if is_required or isinstance(parameter.default, str) else MISSING)
    if name == "dtype":
        return settings.arguments.get(name, torch.float32 if is_required else MISSING)
    kind = _config_class(name, parameter, source)
    if kind is not None:
        value = settings.arguments.get(name)
        if isinstance(value, Mapping):
            settings.arguments |= value
        elif isinstance(value, kind):
            return value
        elif name in settings.arguments:
            raise UserError(
                _("{name} is a config of its own: give what is in it by name, as in --config num_heads=…", name=name)
            )
        try:
            return _config(kind, source, settings)
        except UnknownArgumentError:
            if parameter.default is not None or _count_class_sizes(kind) > 1:
                raise
            return MISSING  # an option that is off, such as a scaling of RoPE
    value, size = settings.find(name), SIZE_BY_ALIAS.get(name)
    if value is MISSING and is_required and size == "context_length":
        return DEFAULT_CONTEXT
    if value is MISSING and size == "head_dim" and settings.has_weights and isinstance(parameter.default, int):
        raise settings.missing_error(name)  # it determines the number of heads
    return value


def _parameters(constructor: Callable) -> dict[str, inspect.Parameter]:
    """Return the parameters by name; **kwargs of a class stand for its base's parameters."""
    try:
        signature = inspect.signature(constructor, eval_str=True)
    except (NameError, TypeError, SyntaxError, AttributeError):  # in an annotation for type checkers only
        signature = inspect.signature(constructor)
    parameters = dict(signature.parameters)
    if isinstance(constructor, type) and any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    ):
        base = constructor.__mro__[1]
        return parameters if base in (object, nn.Module) else _parameters(base) | parameters
    return parameters


def _config_class(name: str, parameter: inspect.Parameter, source: ModuleType) -> type | None:
    """Return the config class that an argument expects, AnyConfig for any; None where it expects none."""
    for kind in _annotation_classes(parameter.annotation, source):
        if kind in DICTIONARIES:
            return ConfigStandIn if CONFIG_NAME.search(name) else None
        if is_config_class(kind):
            return ConfigStandIn if typing.is_typeddict(kind) else kind
        if isinstance(kind, type) and kind not in (object, type(None)) and "DictConfig" in kind.__name__:
            return ConfigStandIn
    if is_config_class(type(parameter.default)):
        return type(parameter.default)
    is_typed = parameter.annotation is not parameter.empty and not isinstance(parameter.annotation, str)
    if is_typed or not CONFIG_NAME.search(name) or parameter.default not in (parameter.empty, None):
        return None
    config_classes = [
        config_class
        for config_class in vars(source).values()
        if isinstance(config_class, type) and is_config_class(config_class)
    ]
    config_classes = [config_class for config_class in config_classes if _count_class_sizes(config_class)]
    return max(config_classes, key=_count_class_sizes) if config_classes else ConfigStandIn


def _annotation_classes(annotation: Any, source: ModuleType) -> list[Any]:
    """Return the classes in an annotation: of "Config | None" both."""
    if isinstance(annotation, str):
        names = re.findall(r"[A-Za-z_]\w*", annotation)
        return [named_class for name in names if (named_class := getattr(source, name, None)) is not None]
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType, typing.Annotated):
        return [
            inner_class
            for argument in typing.get_args(annotation)
            for inner_class in _annotation_classes(argument, source)
        ]
    return [] if annotation is inspect.Parameter.empty else [origin or annotation]


def is_config_class(kind: Any) -> bool:
    """Return whether a class holds settings by name."""
    if not isinstance(kind, type) or issubclass(kind, nn.Module) or kind.__module__ in ("builtins", "typing"):
        return False
    if dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__") or hasattr(kind, "model_fields"):
        return True
    if hasattr(kind, "_fields") and issubclass(kind, tuple) or typing.is_typeddict(kind):
        return True
    return bool(CONFIG_NAME.search(kind.__name__)) and not issubclass(kind, dict | Exception)


def count_sizes(names: Iterable[str]) -> int:
    """Return how many different sizes of a model, such as `d_model`, some argument names stand for."""
    return len({SIZE_BY_ALIAS[name] for name in names if name in SIZE_BY_ALIAS})


def _count_class_sizes(kind: type) -> int:
    try:
        return count_sizes({*_parameters(kind), *vars(kind)})
    except (TypeError, ValueError):
        return 0


def _config(kind: type, source: ModuleType, settings: ConstructorSettings) -> Any:
    if kind is ConfigStandIn:
        return ConfigStandIn(settings)
    config = construct(kind, source, settings)
    if not (
        dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__") or hasattr(kind, "model_fields")
    ) and not (isinstance(config, tuple)):
        for name in [
            name for name in dir(config) if not name.startswith("_") and not callable(getattr(config, name, None))
        ]:
            value = settings.find(name)
            if value is not MISSING and not isinstance(getattr(type(config), name, None), property):
                setattr(config, name, value)
    return config
