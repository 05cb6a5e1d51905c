"""What goes into and comes out of weights that are no modules, or whose modules are not called: told by the functions
that read them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from torch import Tensor, nn

from explorer.own_module.names import Part

MAPS = "linear", "matmul", "__matmul__", "mm", "bmm", "einsum", "addmm"
WITH_BIAS = "linear", "addmm"
TIMES = "mul", "__mul__", "__rmul__", "multiply"
WHOLE_NORMS = "layer_norm", "rms_norm"


class Running:
    """Which block is running: a part of another layer that runs in it stands for its own."""

    def __init__(self):
        self.layers: list[int] = []
        self.passes = 0

    def watch_all(self, hooks: ExitStack, module: nn.Module) -> None:
        def begin(*_told):
            self.passes += 1

        hooks.callback(module.register_forward_pre_hook(begin).remove)

    def watch(self, hooks: ExitStack, block: nn.Module, layer: int, order: list[int]) -> None:
        """Keep track of a block; note it in the order of the module's first pass."""

        def begin(*_told):
            self.layers.append(layer)
            if self.passes <= 1:
                order.append(layer)

        def end(*_told):
            self.layers.pop()

        hooks.callback(block.register_forward_pre_hook(begin).remove)
        hooks.callback(block.register_forward_hook(end).remove)

    def name(self, whole: str) -> str:
        """The name of the value that a part has, by the block in which it runs."""
        if not self.layers or not whole.startswith("blocks."):
            return whole
        return f"blocks.{self.layers[-1]}.{whole.split('.', 2)[2]}"


class Products:
    """`values`: as in `Seen`, of the first function that reads each weight."""

    def __init__(self, parts: Mapping[str, Part], length: int, running: Running):
        self.length, self.values, self.running = length, {}, running
        self.owners: dict[int, list[tuple[str, Part]]] = defaultdict(list)
        for name, part in parts.items():
            if not name.endswith("embedding"):
                self.owners[place_of(part.weight)].append((name, part))

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], given: Any) -> None:
        """Keep what a function reads and gives, where it reads one of the weights."""
        if function not in (*MAPS, *TIMES, *WHOLE_NORMS) or not isinstance(given, Tensor):
            return
        tensors = [each for each in flat((*args, *kwargs.values())) if isinstance(each, Tensor)]
        for tensor in tensors:
            for whole, part in self.owners.get(place_of(tensor), ()):
                name = self.running.name(whole)
                if "norm" in name:
                    self._note_norm(name, part, function, tensors, given)
                elif function in MAPS:
                    self._note_map(name, part, function, tensor, tensors, given)

    def _note_norm(self, name: str, part: Part, function: str, tensors: Sequence[Tensor], given: Tensor) -> None:
        if function in WHOLE_NORMS:
            self._keep(f"{name}.in", tensors[0], part.weight.shape[0])
        elif function not in TIMES or part.bias is not None:
            return
        self._keep(f"{name}.out", given, part.weight.shape[0])

    def _note_map(
        self, name: str, part: Part, function: str, weight: Tensor, tensors: Sequence[Tensor], given: Tensor
    ) -> None:
        others = [each for each in tensors if each is not weight and each.ndim > 1]
        if len(others) != 1:
            return
        self._keep(f"{name}.in", others[0], part.weight.shape[1])
        if part.bias is None or function in WITH_BIAS and any(each.ndim == 1 for each in tensors):
            whole = given.numel() // self.length
            value = rows_of(given, self.length, whole)
            if value is not None and whole > part.weight.shape[0]:
                value = value[:, part.rows]
            if value is not None and value.shape[1] == part.weight.shape[0]:
                self.values.setdefault(f"{name}.out", value)

    def _keep(self, name: str, value: Tensor, width: int) -> None:
        found = rows_of(value, self.length, width)
        if found is not None:
            self.values.setdefault(name, found)


def place_of(tensor: Tensor) -> int:
    """Where its numbers lie, the same of all views."""
    return tensor.untyped_storage().data_ptr()


def flat(values: Sequence[Any]) -> list[Any]:
    return [each for value in values for each in (value if isinstance(value, tuple | list) else (value,))]


def rows_of(value: Tensor, length: int, width: int) -> Tensor | None:
    """(T, n) of one text's values, whose heads may have an axis of their own; None of anything else."""
    if value.numel() != length * width or not value.is_floating_point():
        return None
    value = value.detach().squeeze(0) if value.ndim > 2 else value.detach()
    if value.ndim == 3 and value.shape[0] != length and value.shape[1] == length:
        value = value.transpose(0, 1)
    if value.ndim < 2 or value.shape[0] != length:
        return None
    return value.flatten(1).float().clone()
