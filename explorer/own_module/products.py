"""What goes into and comes out of weights that are no modules, or whose modules are not called: told by the functions
that read them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from explorer.own_module.names import Part

MAPS = "linear", "matmul", "__matmul__", "mm", "bmm", "einsum", "addmm"
WITH_BIAS = "linear", "addmm"
TIMES = "mul", "__mul__", "__rmul__", "multiply"
WHOLE_NORMS = "layer_norm", "rms_norm"


class Products:
    """`values`: as in `Seen`, of the first function that reads each weight."""

    def __init__(self, parts: Mapping[str, Part], length: int):
        self.length, self.values = length, {}
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
            for name, part in self.owners.get(place_of(tensor), ()):
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
