"""Make a module from its owner's file, "file.py:Class": the file is run, so nobody but its owner may ask for it.

With weights the module is first made without memory, on PyTorch's "meta" device: only where its names and shapes are
those of the file is it made in earnest.
"""

import contextlib
import importlib.util
import io
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.language import _
from explorer.own_module.constructor import Settings, UnknownArgument, construct, count_sizes
from explorer.own_module.names import sizes_in, unwrapped
from explorer.own_module.running import told
from explorer.own_module.weights_file import State, WeightsFile, is_table, read_weights_file
from explorer.state.errors import UserError
from explorer.tracing.memory_left import bytes_left, in_bytes

SMALL = {
    "vocab_size": 61,
    "context_length": 64,
    "d_model": 48,
    "num_layers": 2,
    "num_heads": 3,
    "d_ff": 80,
}  # √d, √D, √H all differ
MAX_PREFIXES = 4
SPARE_BYTES = 256 << 20  # that a module may take besides its weights, for masks and tables


@dataclass(frozen=True)
class OwnModule:
    """A module with what is known of how it came about.

    Attributes:
        sizes: by our names, what its constructor was told of heads.
        notes: what its owner should know, in sentences.
    """

    module: nn.Module
    sizes: Mapping[str, int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fit:
    """Weights of a file that are those of a module.

    Attributes:
        settings: with which the module was made.
        state: of the file; its names are those of the file, without what wraps modules.
        names: module's name -> name in `state`, of weights and of tables.
    """

    settings: Settings
    state: State
    names: Mapping[str, str]


def load(place: str, weights: str | Path | None = None, given: Mapping[str, Any] | None = None) -> nn.Module:
    """The module of `load_own_module` alone."""
    return load_own_module(place, weights, given).module


def load_own_module(place: str, weights: str | Path | None = None, given: Mapping[str, Any] | None = None) -> OwnModule:
    """Make the module that a file names: by a class, a function that returns a module, or the module itself.

    Args:
        place: "file.py:Name".
        weights: file or folder that torch.save or safetensors wrote; pickled code in it is not run.
        given: arguments of the constructor by their names; `num_heads` and the like by ours, too.

    Raises:
        UserError: there is no such file or name, it fails, or the weights are not its own.
    """
    path, _colon, name = place.rpartition(":")
    if not path or not name:
        raise UserError(_("A module is named as file.py:Class, got {got!r}.", got=place))
    file = read_weights_file(Path(weights)) if weights else None
    source = run(Path(path))
    if not hasattr(source, name):
        raise UserError(_("{file} has no {name}.", file=Path(path).name, name=name))
    maker = Maker(getattr(source, name), name, source, dict(given or {}))
    return maker.with_weights(file) if file else maker.without_weights()


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


class Maker:
    """Makes a module, as often as it takes to find what its weights fit.

    Args:
        made_by: a class, a function, or a module.
        name: of it.
        source: the file that it is from.
        given: arguments by name.
    """

    def __init__(self, made_by: Any, name: str, source: ModuleType, given: Mapping[str, Any]):
        self.made_by, self.name, self.source, self.given = made_by, name, source, given
        tables = [value for value in vars(source).values() if type(value) is dict and count_sizes(value) > 1]
        self.defaults = {name: value for table in reversed(tables) for name, value in table.items()}

    def without_weights(self) -> OwnModule:
        settings = Settings(self.given, sizes=SMALL, defaults=self.defaults)
        if (sketch := self._sketch(settings)) is not None:
            memory, left = sum(weight.numel() * 4 for weight in sketch.parameters()), bytes_left("cpu")
            if left is not None and memory > left:
                raise UserError(
                    _(
                        "{name} takes {memory} of memory, and {left} are free: make it smaller, as in --config "
                        "num_layers=2 d_model=64.",
                        name=self.name,
                        memory=in_bytes(memory),
                        left=in_bytes(left),
                    )
                )
        return OwnModule(self._make(settings), heads_in(settings))

    def with_weights(self, file: WeightsFile) -> OwnModule:
        """The module with the first set of weights of the file that fits it."""
        fits, refused = [], []
        for state in file.states:
            fits += self._fits(file, state, refused)
        if not fits:
            raise refused[0]
        fit = fits[0]
        module = (
            self.made_by if isinstance(self.made_by, nn.Module) else self._make(fit.settings, limit=_limit(fit.state))
        )
        fill(module, fit)
        return OwnModule(module, heads_in(fit.settings), tuple(_notes(file, fits)))

    def _fits(self, file: WeightsFile, state: State, refused: list[UserError]) -> Iterator[Fit]:
        for inner in without_prefixes(state):
            sizes = sizes_in({name: weight for name, weight in inner.tensors.items() if not is_table(weight)})
            tables = [weight for weight in inner.tensors.values() if is_table(weight) and weight.ndim >= 2]
            if lengths := [weight.squeeze().shape[0] for weight in tables if weight.squeeze().ndim >= 2]:
                sizes.setdefault("context_length", min(lengths))
            for shapes_first in (False, True):
                settings = Settings(self.given, file.settings, sizes, self.defaults, True, shapes_first)
                try:
                    module = self._sketch(settings)
                    if module is None:  # its constructor computes with numbers, which that device has none of
                        module = self._make(settings, limit=_limit(inner))
                    yield Fit(settings, inner, match_names(module, inner))
                    break
                except UserError as error:
                    refused.append(error)

    def _sketch(self, settings: Settings) -> nn.Module | None:
        """The module without memory; None where it cannot be made without."""
        if isinstance(self.made_by, nn.Module):
            return self.made_by
        try:
            with torch.device("meta"), contextlib.redirect_stdout(io.StringIO()), torch.random.fork_rng(devices=[]):
                module = self._call(settings)
        except UnknownArgument:
            raise
        except (Exception, SystemExit):  # told when it is made in earnest
            return None
        return module if isinstance(module, nn.Module) else None

    def _make(self, settings: Settings, limit: int | None = None) -> nn.Module:
        """The module itself.

        Raises:
            UserError: it cannot be made, takes more memory than the limit, or is no module.
        """
        with (
            told(_("{name} cannot be made", name=self.name)),
            MemoryLimit(limit) if limit else contextlib.nullcontext(),
        ):
            module = self._call(settings)
        if not isinstance(module, nn.Module):
            raise UserError(_("A torch.nn.Module is asked for, got {got}.", got=type(module).__name__))
        return module

    def _call(self, settings: Settings) -> Any:
        if isinstance(self.made_by, nn.Module) or not callable(self.made_by):
            return self.made_by
        return construct(self.made_by, self.source, settings)


class MemoryLimit(TorchDispatchMode):
    """Stops tensors from being made of nothing, such as random ones, beyond a number of bytes in all."""

    def __init__(self, limit: int):
        super().__init__()
        self.left = self.limit = limit

    def __torch_dispatch__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if args and isinstance(args[0], list | tuple) and all(isinstance(each, int) for each in args[0]):
            self.left -= 4 * math.prod(args[0])
            if self.left < 0:
                raise UserError(
                    _(
                        "The module takes more than {size} of memory, which its weights do not: give its sizes, as in "
                        "--config num_layers=…",
                        size=in_bytes(self.limit),
                    )
                )
        return func(*args, **(kwargs or {}))


def _limit(state: State) -> int:
    return SPARE_BYTES + 4 * sum(4 * weight.numel() for weight in state.tensors.values())


def heads_in(settings: Settings) -> dict[str, int]:
    heads = {name: settings.used.get(name) for name in ("num_heads", "num_kv_heads")}
    return {name: value for name, value in heads.items() if isinstance(value, int) and value > 0}


def without_prefixes(state: State) -> list[State]:
    """The set of weights, and what stands in it under a common beginning, such as Lightning's "model."; those first
    whose names are known best."""
    plain = State(state.path, {unwrapped(name): weight for name, weight in state.tensors.items()})
    starts: Counter[str] = Counter()
    for name in plain.tensors:
        parts = name.split(".")[:-1]
        chains = [".".join(parts[: count + 1]) + "." for count in range(min(len(parts), MAX_PREFIXES))]
        starts.update(chain for chain in chains if not any(part.isdecimal() for part in chain.split(".")))
    found = [plain]
    for start, count in starts.items():
        if 3 * count >= len(plain.tensors):
            inner = {
                name.removeprefix(start): weight for name, weight in plain.tensors.items() if name.startswith(start)
            }
            found.append(State((*state.path, start.rstrip(".")), inner))
    return sorted(found, key=lambda each: (each.is_average, -len(sizes_in(each.tensors))))


def match_names(module: nn.Module, state: State) -> dict[str, str]:
    """Name in the module -> name in the file, of all its weights and of what tables both have.

    Raises:
        UserError: the module has weights that the file lacks, of other shapes, or the file has more.
    """
    owned = dict(module.named_parameters(remove_duplicate=False))
    buffers = dict(module.named_buffers())
    theirs = {name: unwrapped(name) for name in (*owned, *buffers)}
    if not set(theirs.values()) & set(state.tensors) and owned:  # a module around the one that was saved
        start = _common_start([theirs[name] for name in owned])
        theirs = {name: inner.removeprefix(start) for name, inner in theirs.items()}
    found = {name: inner for name, inner in theirs.items() if inner in state.tensors}
    shared: dict[int, list[str]] = {}
    for name, weight in owned.items():
        shared.setdefault(id(weight), []).append(name)
    for names in shared.values():
        here = [name for name in names if name in found]
        if not here:
            raise UserError(_("The weights lack {name}.", name=theirs[names[0]]))
        for name in here:
            _check_weight(found[name], state.tensors[found[name]], owned[name])
        first = state.tensors[found[here[0]]]
        if other := next((name for name in here if not torch.equal(state.tensors[found[name]], first)), None):
            raise UserError(
                _(
                    "The module has one weight for {one} and {other}, and the file two different ones: make it without "
                    "tying them.",
                    one=found[here[0]],
                    other=found[other],
                )
            )
    left = [name for name in state.tensors if name not in found.values() and not is_table(state.tensors[name])]
    if left:
        raise UserError(
            _(
                "The file has weights that the module has no place for: {count}, such as {name}. Is the module made "
                "with other sizes (--config num_layers=…), or another one?",
                count=len(left),
                name=left[0],
            )
        )
    return {
        name: inner
        for name, inner in found.items()
        if name in owned or state.tensors[inner].shape == buffers[name].shape
    }


def _check_weight(name: str, stored: Tensor, weight: Tensor) -> None:
    if stored.shape != weight.shape:
        raise UserError(
            _(
                "The weights do not fit the module: {name} is {wanted} there and {got} in the file. Give the module’s "
                "sizes, as in --config d_model=…",
                name=name,
                wanted=tuple(weight.shape),
                got=tuple(stored.shape),
            )
        )
    if not stored.is_floating_point() and not stored.is_complex():
        raise UserError(
            _(
                "{name} holds {dtype}, not the weights as they were trained: quantized ones are not read.",
                name=name,
                dtype=stored.dtype,
            )
        )
    if not stored.isfinite().all():
        raise UserError(_("{name} holds numbers that are not finite: its training went wrong.", name=name))


def _common_start(names: list[str]) -> str:
    first = names[0].split(".")[:-1]
    for count in range(len(first), 0, -1):
        start = ".".join(first[:count]) + "."
        if all(name.startswith(start) for name in names):
            return start
    return ""


@torch.no_grad()
def fill(module: nn.Module, fit: Fit) -> None:
    """Copy the weights into the module, and the tables that were kept with them."""
    places = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers())
    for name, inner in fit.names.items():
        if name in places:
            places[name].copy_(fit.state.tensors[inner])


def _notes(file: WeightsFile, fits: list[Fit]) -> Iterator[str]:
    """Which of several sets of weights was taken, and where it was read how many heads there are."""
    fit, own = fits[0], set(map(id, fits[0].state.tensors.values()))
    others = [each.state.label for each in fits[1:] if own.isdisjoint(map(id, each.state.tensors.values()))]
    if others:
        yield _(
            "{file} has several sets of weights that fit: {taken} was taken, not {others}.",
            file=file.name,
            taken=fit.state.label or file.name,
            others=", ".join(others),
        )
    elif fit.state.is_average:
        yield _(
            "The weights are a running average of those of training: {taken} of {file}.",
            taken=fit.state.label,
            file=file.name,
        )
    for size, where in fit.settings.sources_used:
        if size == "num_heads":
            yield _("There are {count} heads, by {where}.", count=fit.settings.used[size], where=where)
            return
