"""A module from its owner's file, "file.py:Class": the file is run, so nobody but its owner may ask for it.

What a constructor wants to know is told by the names of its arguments: sizes of the weights that are given, or else
small ones.
"""

import dataclasses
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from explorer.language import _
from explorer.own_module.described import CONTEXT, DEFAULT_CONTEXT, HEADS, THETA
from explorer.own_module.names import WRAPPERS, sizes_in
from explorer.own_module.running import told
from explorer.state.errors import UserError

SMALL = {
    "vocab_size": 61,
    "context_length": 64,
    "d_model": 48,
    "num_layers": 2,
    "num_heads": 3,
    "d_ff": 80,
}  # √d, √D, √H all differ
CALLED = {  # what arguments that are sizes are called
    "vocab_size": ("vocab_size", "n_vocab", "vocab", "num_tokens"),
    "context_length": (*CONTEXT, "max_len", "max_length"),
    "d_model": ("d_model", "n_embd", "hidden_size", "dim", "embed_dim", "width"),
    "num_layers": ("num_layers", "n_layer", "n_layers", "num_hidden_layers", "depth"),
    "num_heads": HEADS,
    "d_ff": ("d_ff", "intermediate_size", "ffn_dim", "hidden_dim", "d_hidden"),
    "rope_theta": THETA,
}
SIZE = {name: size for size, names in CALLED.items() for name in names}
STATES = "model_state_dict", "state_dict", "model"  # under which checkpoints keep the weights


def load(place: str, weights: str | Path | None = None, given: Mapping[str, Any] | None = None) -> nn.Module:
    """The module that a file makes: a class, a function that returns a module, or a module itself.

    Args:
        place: "file.py:Name".
        weights: of it, as `torch.save` or safetensors wrote them; pickled code in them is not run.
        given: arguments of the constructor by their names; `num_heads` and the like by ours, too.

    Raises:
        UserError: there is no such file or name, it fails, or the weights are not its own.
    """
    path, _colon, name = place.rpartition(":")
    if not path or not name:
        raise UserError(_("A module is named as file.py:Class, got {got!r}.", got=place))
    state = read_weights(Path(weights)) if weights else None
    source = run(Path(path))
    if not hasattr(source, name):
        raise UserError(_("{file} has no {name}.", file=Path(path).name, name=name))
    sizes = ({"context_length": DEFAULT_CONTEXT} | sizes_in(state) if state else SMALL) | dict(given or {})
    with told(_("{name} cannot be made", name=name)):
        module = made(getattr(source, name), source, sizes)
    if not isinstance(module, nn.Module):
        raise UserError(_("A torch.nn.Module is asked for, got {got}.", got=type(module).__name__))
    if state:
        fill(module, state)
    return module


def run(path: Path) -> ModuleType:
    """The file as a Python module; others beside it can be imported by it."""
    if not path.is_file():
        raise UserError(_("there is no file {path!r}", path=str(path)))
    spec = importlib.util.spec_from_file_location(f"own_module_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(_("{file} is no Python file.", file=path.name))
    source = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = source  # dataclasses look their module up
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        with told(_("{file} cannot be run", file=path.name)):
            spec.loader.exec_module(source)
    finally:
        sys.path.pop(0)
    return source


def made(made_by: Any, source: ModuleType, sizes: Mapping[str, Any]) -> Any:
    """What a class or function makes; anything else is returned as it is."""
    if isinstance(made_by, nn.Module) or not callable(made_by):
        return made_by
    return made_by(**arguments(made_by, source, sizes))


def arguments(made_by: Callable, source: ModuleType, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """By name; UserError asks for one that nothing tells."""
    found = {}
    for name, parameter in _parameters(made_by).items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in sizes or SIZE.get(name) in sizes:
            found[name] = sizes.get(name, sizes.get(SIZE.get(name)))
        elif parameter.default is parameter.empty:
            if (config := config_class(parameter, source)) is None:
                raise UserError(_("It needs {name}: give it, as in --config {name}=…", name=name))
            found[name] = config(**arguments(config, source, sizes))
    return found


def _parameters(made_by: Callable) -> dict[str, inspect.Parameter]:
    """By name; what a class hands on as **kwargs is what its base takes."""
    own = dict(inspect.signature(made_by).parameters)
    if isinstance(made_by, type) and any(each.kind is each.VAR_KEYWORD for each in own.values()):
        return _parameters(made_by.__mro__[1]) | own
    return own


def config_class(parameter: inspect.Parameter, source: ModuleType) -> type | None:
    """The dataclass that an argument wants: that it is annotated with, or the only one of the file."""
    known = parameter.annotation
    known = getattr(source, known, None) if isinstance(known, str) else known
    if dataclasses.is_dataclass(known):
        return known
    found = [each for each in vars(source).values() if isinstance(each, type) and dataclasses.is_dataclass(each)]
    return found[0] if len(found) == 1 else None


def read_weights(path: Path) -> dict[str, Tensor]:
    """Name -> weight, of a file that torch.save or safetensors wrote."""
    if not path.is_file():
        raise UserError(_("there is no file {path!r}", path=str(path)))
    with told(_("{file} holds no weights that can be read", file=path.name)):
        if path.suffix == ".safetensors":
            found = load_file(path)
        else:
            found = torch.load(path, map_location="cpu", weights_only=True)
    for name in STATES:
        if isinstance(found, dict) and isinstance(found.get(name), dict):
            found = found[name]
    weights = {name: value for name, value in dict(found).items() if isinstance(value, Tensor)}
    if not weights:
        raise UserError(_("{file} holds no weights that can be read", file=path.name))
    return {WRAPPERS.sub("", name): weight for name, weight in weights.items()}


def fill(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load the weights, which are to be all that the module has; what else is there are tables that it makes itself."""
    known = {WRAPPERS.sub("", name): name for name in module.state_dict()}
    needed = {WRAPPERS.sub("", name) for name, _weight in module.named_parameters()}
    if missing := sorted(needed - set(state)):
        raise UserError(_("The weights lack {name}.", name=missing[0]))
    with told(_("The weights do not fit the module")):
        module.load_state_dict({known[name]: value for name, value in state.items() if name in known}, strict=False)
