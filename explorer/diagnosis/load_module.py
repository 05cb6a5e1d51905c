"""Load a module from a user's file or package. This executes it: use only trusted code.

With weights the module is first built without memory, on PyTorch's "meta" device, and then with memory only if its
names and shapes are those of the weights file.
"""

import contextlib
import io
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.diagnosis.import_source import find_definition, import_definition, repository_settings, split_target
from explorer.diagnosis.match_weights import infer_sizes, unwrapped_name
from explorer.diagnosis.module_settings import ConstructorSettings, UnknownArgumentError, construct, count_sizes
from explorer.diagnosis.run_module import errors_as_user_errors
from explorer.diagnosis.weights_file import StateDict, WeightsFile, is_mask_or_table, read_weights_file
from explorer.errors import UserError
from explorer.tracing.model_catalog import available_bytes, format_bytes
from explorer.translations import _

DEFAULT_SIZES = {
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
class UserModule:
    """A user's module and how it was built.

    Attributes:
        name: of its class.
        sizes: by our names, the numbers of heads that its constructor used.
        notes: sentences for its owner.
    """

    module: nn.Module
    name: str
    sizes: Mapping[str, int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FittingWeights:
    """Weights of a file that fit a module.

    Attributes:
        settings: used to build the module.
        state: of the file; names without wrapper prefixes.
        names: module's name -> name in `state`, of weights and of tables.
    """

    settings: ConstructorSettings
    state: StateDict
    names: Mapping[str, str]


def load_module(
    target: str, weights: str | Path | None = None, arguments: Mapping[str, Any] | None = None
) -> nn.Module:
    """Return only the module of `load_user_module`."""
    return load_user_module(target, weights, arguments).module


def load_user_module(
    target: str, weights: str | Path | None = None, arguments: Mapping[str, Any] | None = None
) -> UserModule:
    """Build the module that a file names: by a class, a function that returns a module, or the module itself.

    Args:
        target: "file.py:Name", or a folder with the file somewhere below; without ":Name" the likeliest class.
        weights: file or folder written by torch.save or safetensors; pickled code in it is not run.
        arguments: of the constructor by name; sizes such as `num_heads` also by our names.

    Raises:
        UserError: there is no such file or name, it fails, or the weights do not fit.
    """
    file = read_weights_file(Path(weights)) if weights else None
    definition, name = find_definition(*split_target(target))
    with import_definition(definition) as source:
        if not hasattr(source, name):
            raise UserError(_("{file} has no {name}.", file=definition.path.name, name=name))
        maker = ModuleBuilder(getattr(source, name), name, source, dict(arguments or {}))
        if file is None:
            return maker.build_untrained()
        file = replace(file, settings=(*file.settings, *repository_settings(definition)))
        return maker.build_with_weights(file)


class ModuleBuilder:
    """Builds a module, repeatedly if needed to find settings that its weights fit.

    Args:
        constructor: a class, a function, or a module.
        name: of it.
        source: the Python module that it is from.
        arguments: by name.
    """

    def __init__(self, constructor: Any, name: str, source: ModuleType, arguments: Mapping[str, Any]):
        self.constructor, self.name, self.source, self.arguments = constructor, name, source, arguments
        tables = [value for value in vars(source).values() if type(value) is dict and count_sizes(value) > 1]
        self.defaults = {name: value for table in reversed(tables) for name, value in table.items()}

    def build_untrained(self) -> UserModule:
        """Build the module with default sizes; UserError if it does not fit into memory."""
        settings = ConstructorSettings(self.arguments, sizes=DEFAULT_SIZES, defaults=self.defaults)
        if (meta_module := self._build_on_meta(settings)) is not None:
            memory, available = sum(weight.numel() * 4 for weight in meta_module.parameters()), available_bytes("cpu")
            if available is not None and memory > available:
                raise UserError(
                    _(
                        "{name} takes {memory} of memory, and {left} are free: make it smaller, as in --config "
                        "num_layers=2 d_model=64.",
                        name=self.name,
                        memory=format_bytes(memory),
                        left=format_bytes(available),
                    )
                )
        return UserModule(self._build(settings), self.name, used_head_counts(settings))

    def build_with_weights(self, file: WeightsFile) -> UserModule:
        """Build the module with the file's first set of weights that fits."""
        fits, errors = [], []
        for state in file.states:
            fits += self._fits(file, state, errors)
        if not fits:
            raise errors[0]
        fit = fits[0]
        module = (
            self.constructor
            if isinstance(self.constructor, nn.Module)
            else self._build(fit.settings, limit=_memory_limit(fit.state))
        )
        load_weights(module, fit)
        return UserModule(module, self.name, used_head_counts(fit.settings), tuple(_notes(file, fits)))

    def _fits(self, file: WeightsFile, state: StateDict, errors: list[UserError]) -> Iterator[FittingWeights]:
        for inner in prefix_stripped_states(state):
            sizes = infer_sizes(
                {name: weight for name, weight in inner.tensors.items() if not is_mask_or_table(weight)}
            )
            tables = [weight for weight in inner.tensors.values() if is_mask_or_table(weight) and weight.ndim >= 2]
            if lengths := [weight.squeeze().shape[0] for weight in tables if weight.squeeze().ndim >= 2]:
                sizes.setdefault("context_length", min(lengths))
            for shapes_first in (False, True):
                settings = ConstructorSettings(self.arguments, file.settings, sizes, self.defaults, True, shapes_first)
                try:
                    module = self._build_on_meta(settings)
                    if module is None:  # its constructor computes with values, which the meta device lacks
                        module = self._build(settings, limit=_memory_limit(inner))
                    yield FittingWeights(settings, inner, match_names(module, inner))
                    break
                except UserError as error:
                    errors.append(error)

    def _build_on_meta(self, settings: ConstructorSettings) -> nn.Module | None:
        """Build the module on the "meta" device; None where that fails."""
        if isinstance(self.constructor, nn.Module):
            return self.constructor
        try:
            with torch.device("meta"), contextlib.redirect_stdout(io.StringIO()), torch.random.fork_rng(devices=[]):
                module = self._call(settings)
        except UnknownArgumentError:
            raise
        except (Exception, SystemExit):  # raised again when it is built with memory
            return None
        return module if isinstance(module, nn.Module) else None

    def _build(self, settings: ConstructorSettings, limit: int | None = None) -> nn.Module:
        """Build the module with memory.

        Raises:
            UserError: it cannot be built, takes more memory than the limit, or is no module.
        """
        with (
            errors_as_user_errors(_("{name} cannot be made", name=self.name)),
            MemoryLimit(limit) if limit else contextlib.nullcontext(),
        ):
            module = self._call(settings)
        if not isinstance(module, nn.Module):
            raise UserError(_("A torch.nn.Module is asked for, got {got}.", got=type(module).__name__))
        return module

    def _call(self, settings: ConstructorSettings) -> Any:
        if isinstance(self.constructor, nn.Module) or not callable(self.constructor):
            return self.constructor
        return construct(self.constructor, self.source, settings)


class MemoryLimit(TorchDispatchMode):
    """A limit on the total bytes of tensors created by size, such as random ones."""

    def __init__(self, limit: int):
        super().__init__()
        self.left = self.limit = limit

    def __torch_dispatch__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if args and isinstance(args[0], list | tuple) and all(isinstance(size, int) for size in args[0]):
            self.left -= 4 * math.prod(args[0])
            if self.left < 0:
                raise UserError(
                    _(
                        "The module takes more than {size} of memory, which its weights do not: give its sizes, as in "
                        "--config num_layers=…",
                        size=format_bytes(self.limit),
                    )
                )
        return func(*args, **(kwargs or {}))


def _memory_limit(state: StateDict) -> int:
    return SPARE_BYTES + 4 * sum(4 * weight.numel() for weight in state.tensors.values())


def used_head_counts(settings: ConstructorSettings) -> dict[str, int]:
    """Return the head counts that the constructor read from the settings."""
    heads = {name: settings.used.get(name) for name in ("num_heads", "num_kv_heads")}
    return {name: value for name, value in heads.items() if isinstance(value, int) and value > 0}


def prefix_stripped_states(state: StateDict) -> list[StateDict]:
    """Return the weights, also without common prefixes such as Lightning's "model."; the best-known names first."""
    plain = StateDict(state.path, {unwrapped_name(name): weight for name, weight in state.tensors.items()})
    starts: Counter[str] = Counter()
    for name in plain.tensors:
        parts = name.split(".")[:-1]
        chains = [".".join(parts[: count + 1]) + "." for count in range(min(len(parts), MAX_PREFIXES))]
        starts.update(chain for chain in chains if not any(part.isdecimal() for part in chain.split(".")))
    states = [plain]
    for start, count in starts.items():
        if 3 * count >= len(plain.tensors):
            inner = {
                name.removeprefix(start): weight for name, weight in plain.tensors.items() if name.startswith(start)
            }
            states.append(StateDict((*state.path, start.rstrip(".")), inner))
    return sorted(states, key=lambda candidate: (candidate.is_average, -len(infer_sizes(candidate.tensors))))


def match_names(module: nn.Module, state: StateDict) -> dict[str, str]:
    """Map the module's names to the file's, for all weights and for the tables that both have.

    Raises:
        UserError: the module has weights that the file lacks, of other shapes, or the file has more.
    """
    owned = dict(module.named_parameters(remove_duplicate=False))
    buffers = dict(module.named_buffers())
    file_names = {name: unwrapped_name(name) for name in (*owned, *buffers)}
    if not set(file_names.values()) & set(state.tensors) and owned:  # a module around the one that was saved
        start = _common_start([file_names[name] for name in owned])
        file_names = {name: inner.removeprefix(start) for name, inner in file_names.items()}
    matched = {name: inner for name, inner in file_names.items() if inner in state.tensors}
    shared: dict[int, list[str]] = {}
    for name, weight in owned.items():
        shared.setdefault(id(weight), []).append(name)
    for names in shared.values():
        stored_names = [name for name in names if name in matched]
        if not stored_names:
            raise UserError(_("The weights lack {name}.", name=file_names[names[0]]))
        for name in stored_names:
            _check_weight(matched[name], state.tensors[matched[name]], owned[name])
        first = state.tensors[matched[stored_names[0]]]
        if other := next((name for name in stored_names if not torch.equal(state.tensors[matched[name]], first)), None):
            raise UserError(
                _(
                    "The module has one weight for {one} and {other}, and the file two different ones: make it without "
                    "tying them.",
                    one=matched[stored_names[0]],
                    other=matched[other],
                )
            )
    unused = [
        name for name in state.tensors if name not in matched.values() and not is_mask_or_table(state.tensors[name])
    ]
    if unused:
        raise UserError(
            _(
                "The file has weights that the module has no place for: {count}, such as {name}. Is the module made "
                "with other sizes (--config num_layers=…), or another one?",
                count=len(unused),
                name=unused[0],
            )
        )
    return {
        name: inner
        for name, inner in matched.items()
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
def load_weights(module: nn.Module, fit: FittingWeights) -> None:
    """Copy the weights, and the tables stored with them, into the module."""
    tensors = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers())
    for name, inner in fit.names.items():
        if name in tensors:
            tensors[name].copy_(fit.state.tensors[inner])


def _notes(file: WeightsFile, fits: list[FittingWeights]) -> Iterator[str]:
    """Yield notes on which of several sets of weights is used, and where the number of heads was read."""
    fit, used_tensors = fits[0], set(map(id, fits[0].state.tensors.values()))
    other_labels = [
        other.state.label for other in fits[1:] if used_tensors.isdisjoint(map(id, other.state.tensors.values()))
    ]
    if other_labels:
        yield _(
            "{file} has several sets of weights that fit: {taken} was taken, not {others}.",
            file=file.name,
            taken=fit.state.label or file.name,
            others=", ".join(other_labels),
        )
    elif fit.state.is_average:
        yield _(
            "The weights are a running average of those of training: {taken} of {file}.",
            taken=fit.state.label,
            file=file.name,
        )
    for size, source in fit.settings.sources_used:
        if size == "num_heads":
            yield _("There are {count} heads, by {where}.", count=fit.settings.used[size], where=source)
            return
