"""Read a file or folder of weights that a training run wrote; no pickled code is run.

A checkpoint is a tree of mappings. Some hold tensors by name: sets of weights, or an optimizer's state. Others hold
settings. They may be anywhere in the tree, and are recognised by their contents.
"""

import json
import pickle
import pickletools
import re
import warnings
import zipfile
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tomllib
import torch
import yaml
from safetensors import safe_open
from torch import Tensor

from explorer.diagnosis.run_module import first_line
from explorer.errors import UserError
from explorer.translations import _

MAX_DEPTH = 6
MAX_JSON_BYTES = 1 << 20
USUAL_KEYS = "model", "model_state_dict", "state_dict", "model_state", "weights", "params", "net", "network", "module"
AVERAGE_KEYS = re.compile(r"(?:^|_)(?:ema|swa|shadow|averaged?|polyak)(?:_|$)")
OPTIMIZER_KEYS = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "step", "sum"}
NON_MODEL_KEYS = re.compile(r"optim|sched|scaler|rng|callback|loops|trainer|dataset|tokenizer")
SETTINGS_STEMS = "config", "model_config", "model_args", "hparams", "args", "params"
SETTINGS_SUFFIXES = ".json", ".yaml", ".yml", ".toml"
SUFFIXES = ".safetensors", ".pt", ".pth", ".ckpt", ".bin"
OLD_FORMAT_PICKLES = 5  # of torch.save before zip files: magic number, version, system, the object, names of storages
SAVE_EXPRESSION = "torch.save(model.state_dict(), …)"
NOT_PLAIN = object()


class UnpickledObject(dict):
    """The data of a pickled object without its class: attributes and items by name.

    Attributes:
        full_name: of the class, as in "argparse.Namespace".
        arguments: of its constructor.
    """

    full_name = ""

    def __new__(cls, *arguments: Any):
        stand_in = super().__new__(cls)
        stand_in.arguments = arguments
        return stand_in

    def __init__(self, *_arguments: Any):
        super().__init__()

    __hash__ = object.__hash__  # enumerations are keys of mappings

    def __setstate__(self, state: Any) -> None:
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, Mapping):
                self.update(part)

    @property
    def is_module(self) -> bool:
        return "_modules" in self and "_parameters" in self


class UnpickledDict:
    """A stand-in for a dictionary's subclass: torch sets items only in an OrderedDict."""

    full_name = ""

    def __new__(cls, *_arguments: Any) -> OrderedDict:
        stand_in = OrderedDict()
        stand_in.stands_in_for = cls.full_name
        return stand_in


def _restore_stand_in(value: Any) -> Any:
    if isinstance(value, OrderedDict) and hasattr(value, "stands_in_for"):
        stand_in = type("UnpickledObject", (UnpickledObject,), {"full_name": value.stands_in_for})()
        stand_in.update(vars(value) | value)
        return stand_in
    return value


@dataclass(frozen=True)
class StateDict:
    """A set of weights.

    Attributes:
        path: its keys in the file.
        tensors: by their names there.
    """

    path: tuple[str, ...]
    tensors: Mapping[str, Tensor]

    @property
    def label(self) -> str:
        return ".".join(self.path)

    @property
    def is_average(self) -> bool:
        """True if one of its keys names a running average of the weights."""
        return any(AVERAGE_KEYS.search(key.lower()) for key in self.path)


@dataclass(frozen=True)
class WeightsFile:
    """The contents of a weights file.

    Attributes:
        name: of the file.
        states: its sets of weights, the likeliest first.
        settings: (where they are, name -> value), those of the model first.
    """

    name: str
    states: tuple[StateDict, ...]
    settings: tuple[tuple[str, Mapping[str, Any]], ...]


def read_weights_file(path: Path) -> WeightsFile:
    """Read weights written by torch.save or safetensors: a file, a folder, or the index of several files.

    Raises:
        UserError: there is no such file, it cannot be read without running code, or holds no weights.
    """
    if path.is_dir():
        path = _find_weights_file(path)
    if not path.is_file():
        raise UserError(_("there is no file {path!r}", path=str(path)))
    if path.name.endswith(".index.json"):
        tree, folder = _read_shards(path), path.parent
    else:
        tree, folder = _read_file(path), path.parent
    states = tuple(sorted(_find_states(tree), key=_rank_state))
    if not states:
        raise UserError(_explain_no_weights(path.name, tree))
    settings = sorted(_find_settings(tree), key=lambda setting: _rank_settings(setting[0]))
    sources = [(": ".join(filter(None, (path.name, ".".join(keys)))), values) for keys, values in settings]
    for name in (f"{stem}{suffix}" for stem in (path.stem, *SETTINGS_STEMS) for suffix in SETTINGS_SUFFIXES):
        sources += read_settings(folder / name)
    return WeightsFile(path.name, states, tuple(sources))


def _find_weights_file(folder: Path) -> Path:
    """Return the weights file in a folder."""
    for name in (
        "model.safetensors",
        "model.safetensors.index.json",
        "pytorch_model.bin",
        "pytorch_model.bin.index.json",
    ):
        if (folder / name).is_file():
            return folder / name
    files = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)
    if len(files) == 1:
        return files[0]
    if files:
        names = ", ".join(file.name for file in files[:4])
        raise UserError(
            _("{folder} holds several files of weights: name one of {names}.", folder=folder.name, names=names)
        )
    if list(folder.glob("*.distcp")):
        raise UserError(
            _(
                "{folder} is a checkpoint of torch.distributed: make one file of it, with `python -m "
                "torch.distributed.checkpoint.format_utils dcp_to_torch {folder} weights.pt`.",
                folder=folder.name,
            )
        )
    raise UserError(
        _("{folder} holds no file of weights ({suffixes}).", folder=folder.name, suffixes=", ".join(SUFFIXES))
    )


def _read_shards(index: Path) -> dict[str, Any]:
    weight_map = None
    with suppress(OSError, ValueError, RecursionError, TypeError, KeyError):
        weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    if not isinstance(weight_map, dict):
        raise UserError(_("{file} names no files of weights.", file=index.name))
    shards = {}
    for name in sorted(set(map(str, weight_map.values()))):
        if not (index.parent / name).is_file():
            raise UserError(_("there is no file {path!r}", path=str(index.parent / name)))
        tree = _read_file(index.parent / name)
        shards |= tree["weights"] if name.endswith(".safetensors") else tree
    return {"weights": shards}


def _read_file(path: Path) -> Any:
    """Return the tree in a file.

    Raises:
        UserError: it cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(64)
    if head.startswith(b"version https://git-lfs"):
        raise UserError(
            _(
                "{file} holds no weights that can be read: it stands for a file in Git LFS: `git lfs pull` "
                "fetches that.",
                file=path.name,
            )
        )
    is_safetensors = path.suffix == ".safetensors" or head[8:10] == b'{"' and not head.startswith(b"PK")
    try:
        return _read_safetensors(path) if is_safetensors else _read_torch(path)
    except UserError:
        raise
    except Exception as error:  # a file can be damaged in ways that no list of errors has
        raise UserError(
            _(
                "{file} holds no weights that can be read: {why}. Save them with {way_out}.",
                file=path.name,
                why=_explain(error, head),
                way_out=SAVE_EXPRESSION,
            )
        ) from error


def _explain(error: Exception, head: bytes) -> str:
    text = str(error)
    if blocked := re.search(r"GLOBAL (\S+) whose module", text):
        return _("it asks for {name} to be run", name=blocked[1])
    if head.startswith(b"GGUF"):
        return _("it is a GGUF file")
    if "Unsupported operand" in text and head.startswith(b"PK"):
        return _("it was saved with a pickle_protocol other than 2")
    if "torchscript" in text.lower():
        return _("it is a TorchScript archive")
    if unpickler := re.search(r"WeightsUnpickler error: (.*)", text):
        text = unpickler[1]
    elif head.startswith((b"PK", b"\x80")):
        return _("it is cut short, or torch.save did not write it")
    if not head:
        return _("it is empty")
    if not text or "Unsupported operand" in text or "weights_only" in text:
        return _("torch.save did not write it")
    return first_line(text).rstrip(".") or type(error).__name__


def _read_safetensors(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="pt") as file:
        tree = {name: file.get_tensor(name) for name in file.offset_keys()}
        metadata = {}
        for name, value in (file.metadata() or {}).items():
            metadata[name] = value
            with suppress(ValueError):
                metadata[name] = json.loads(value)
    return {"weights": tree, "metadata": metadata}


def _read_torch(path: Path) -> Any:
    """Read a file of torch.save; objects of classes unknown to torch are replaced by their data."""
    names = _unknown_names(path)
    for kind in (UnpickledObject, UnpickledDict):
        stand_ins = [(type(kind.__name__, (kind,), {"full_name": name}), name) for name in names]
        try:
            with torch.serialization.safe_globals([*_numpy_globals(), *stand_ins]), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what is refused in a sentence
                return torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            if "SETITEM" not in str(error) or kind is UnpickledDict:
                raise
    raise AssertionError("the second way returns or raises")


def _numpy_globals() -> list[tuple[Any, str]]:
    """Return the classes and functions that pickles of numpy's numbers and arrays name: data only."""
    multiarray = np._core.multiarray
    functions = [
        (getattr(multiarray, name), f"numpy.{core}.multiarray.{name}")
        for core in ("core", "_core")
        for name in ("scalar", "_reconstruct")
    ]
    kinds = {getattr(np.dtypes, name) for name in np.dtypes.__all__}
    return [
        *functions,
        (np.dtype, "numpy.dtype"),
        (np.ndarray, "numpy.ndarray"),
        *((kind, f"numpy.dtypes.{kind.__name__}") for kind in kinds),
    ]


def _unknown_names(path: Path) -> set[str]:
    """Return the classes and functions in a file's pickles that neither torch nor `_numpy_globals` allows."""
    with torch.serialization.safe_globals(_numpy_globals()):
        if zipfile.is_zipfile(path):
            return set(torch.serialization.get_unsafe_globals_in_checkpoint(str(path)))
    names = set()
    with path.open("rb") as file, suppress(ValueError, EOFError):
        for _pickle in range(OLD_FORMAT_PICKLES):
            names |= set(_names_in_pickle(file))
    allowed_names = {
        name for _value, name in _numpy_globals()
    } | torch._weights_only_unpickler._get_allowed_globals().keys()
    return names - allowed_names


def _names_in_pickle(file: BinaryIO) -> Iterator[str]:
    for operation, argument, _position in pickletools.genops(file):
        if operation.name == "GLOBAL":
            module, name = argument.split(" ", 1)
            module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
            yield f"{module}.{name}"


def read_settings(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Return (the file's name, name -> value) for each table of settings in a JSON, YAML or TOML file; [] for none."""
    tree: Any = {}
    with suppress(OSError, ValueError, RecursionError, yaml.YAMLError):
        if path.stat().st_size < MAX_JSON_BYTES:
            text = path.read_text(encoding="utf-8")
            read = {".json": json.loads, ".toml": tomllib.loads}.get(path.suffix, yaml.safe_load)
            tree = read(text)
    return [(path.name, values) for _where, values in _find_settings(tree)]


def _iter_mappings(
    tree: Any, path: tuple[str, ...] = (), visited: set[int] | None = None
) -> Iterator[tuple[tuple[str, ...], Mapping]]:
    """Yield every mapping with its path; whole modules are yielded, but not their contents."""
    visited, tree = set() if visited is None else visited, _restore_stand_in(tree)
    if not isinstance(tree, Mapping) or id(tree) in visited or len(path) > MAX_DEPTH:
        return
    visited.add(id(tree))
    yield path, tree
    if not (isinstance(tree, UnpickledObject) and tree.is_module):
        for name, value in tree.items():
            if isinstance(name, str):  # numbers name what optimizers keep of each weight
                yield from _iter_mappings(value, (*path, name), visited)


def _find_states(tree: Any) -> Iterator[StateDict]:
    for path, mapping in _iter_mappings(tree):
        tensors = {name: _as_tensor(value) for name, value in mapping.items() if isinstance(name, str)}
        tensors = {name: value for name, value in tensors.items() if value is not None}
        if any(value.ndim >= 2 for value in tensors.values()) and not tensors.keys() <= OPTIMIZER_KEYS:
            yield StateDict(path, tensors)


def _as_tensor(value: Any) -> Tensor | None:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return torch.from_numpy(value)
    return value.detach() if isinstance(value, Tensor) else None


def _rank_state(state: StateDict) -> tuple:
    last = state.path[-1] if state.path else ""
    usual = USUAL_KEYS.index(last.lower()) if last.lower() in USUAL_KEYS else len(USUAL_KEYS)
    return any(NON_MODEL_KEYS.search(key.lower()) for key in state.path), state.is_average, -len(state.tensors), usual


def _find_settings(tree: Any) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    for path, mapping in _iter_mappings(tree):
        if any(NON_MODEL_KEYS.search(name.lower()) for name in path):
            continue
        values = {name: _plain_value(value) for name, value in mapping.items() if isinstance(name, str)}
        if values := {name: value for name, value in values.items() if value is not NOT_PLAIN}:
            yield path, values


def _plain_value(value: Any) -> Any:
    """Return a number, a text, None, or a list of them; NOT_PLAIN for anything else."""
    value = _restore_stand_in(value)
    if isinstance(value, UnpickledObject) and "_val" in value:  # a node of OmegaConf
        value = value["_val"]
    if isinstance(value, Tensor | np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if (
        isinstance(value, list | tuple)
        and len(value) < 1000
        and all(_plain_value(item) is not NOT_PLAIN for item in value)
    ):
        return value
    return value if value is None or isinstance(value, bool | int | float | str) else NOT_PLAIN


def _rank_settings(path: tuple[str, ...]) -> tuple:
    """Return a sort key: paths that name a model first, then by depth, the root last."""
    names = [name.lower() for name in path]
    return not any(re.search(r"model|arch|transformer|net", name) for name in names), not path, len(path)


def _explain_no_weights(name: str, tree: Any) -> str:
    if pickled_module := next(
        (
            mapping
            for _path, mapping in _iter_mappings(tree)
            if isinstance(mapping, UnpickledObject) and mapping.is_module
        ),
        None,
    ):
        return _(
            "{file} holds a whole module, {name}, which cannot be read without running its code: save its weights "
            "alone, with {way_out}.",
            file=name,
            name=pickled_module.full_name,
            way_out=SAVE_EXPRESSION,
        )
    kind = getattr(tree, "full_name", "") or type(tree).__name__
    keys = ", ".join(map(str, list(tree)[:6])) if isinstance(tree, Mapping) else ""
    description = _("a {kind} of {keys}", kind=kind, keys=keys) if keys else _("a {kind}", kind=kind)
    return _(
        "{file} holds no weights that can be read: it is {kind}. Save them with {way_out}.",
        file=name,
        kind=description,
        way_out=SAVE_EXPRESSION,
    )


def is_mask_or_table(tensor: Tensor) -> bool:
    """Return whether a tensor is no trained weight but a mask, or a table of positions or of frequencies."""
    if not tensor.is_floating_point() or tensor.numel() <= 1:
        return True
    tensor = tensor.float()
    if tensor.ndim == 1:  # θ^(−2i/d): from 1 downwards
        return bool(tensor[0] == 1 and (tensor.diff() < 0).all() and (tensor > 0).all())
    rows = tensor.flatten(0, -3)[0] if tensor.ndim > 2 else tensor  # (T, d)
    first, second = rows[0], rows[min(1, len(rows) - 1)]
    if bool(((first == 0) | (first == 1)).all()):  # sines and cosines of position 0
        is_falling = bool((second >= 0).all() and (second.diff() <= 0).all() and second[0] > 0)
        if bool((first == 1).any()) or is_falling:
            return True
    is_mask = bool(((tensor == 0) | (tensor == 1) | (tensor <= -1e4)).all())
    return is_mask and bool((tensor != 0).any())
