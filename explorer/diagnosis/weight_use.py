"""Record inputs and outputs of weights whose modules are not called, by the functions that use them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from torch import Tensor, nn

from explorer.diagnosis.match_weights import WeightLocation

PRODUCT_FUNCTIONS = "linear", "matmul", "__matmul__", "mm", "bmm", "einsum", "addmm"
BIAS_FUNCTIONS = "linear", "addmm"
MULTIPLY_FUNCTIONS = "mul", "__mul__", "__rmul__", "multiply"
NORM_FUNCTIONS = "layer_norm", "rms_norm"


class RunningBlocks:
    """Tracks which block is running, to name values by its layer even where it runs another layer's submodule."""

    def __init__(self):
        self.layers: list[int] = []
        self.passes = 0

    def watch_all(self, hooks: ExitStack, module: nn.Module) -> None:
        """Count the forward passes of a module until the hooks close."""

        def begin(*_arguments):
            self.passes += 1

        hooks.callback(module.register_forward_pre_hook(begin).remove)

    def watch(self, hooks: ExitStack, block: nn.Module, layer: int, order: list[int]) -> None:
        """Track a block, and append it to `order` in the module's first pass."""

        def begin(*_arguments):
            self.layers.append(layer)
            if self.passes <= 1:
                order.append(layer)

        def end(*_arguments):
            self.layers.pop()

        hooks.callback(block.register_forward_pre_hook(begin).remove)
        hooks.callback(block.register_forward_hook(end).remove)

    def value_name(self, full_name: str) -> str:
        """Return a value's name with the layer of the block that is running."""
        if not self.layers or not full_name.startswith("blocks."):
            return full_name
        return f"blocks.{self.layers[-1]}.{full_name.split('.', 2)[2]}"


class WeightUseRecorder:
    """Records `values`, as in `RecordedValues`, of the first function that reads each weight."""

    def __init__(self, locations: Mapping[str, WeightLocation], length: int, running: RunningBlocks):
        self.length, self.values, self.running = length, {}, running
        self.owners: dict[int, list[tuple[str, WeightLocation]]] = defaultdict(list)
        for name, location in locations.items():
            if not name.endswith("embedding"):
                self.owners[storage_address(location.weight)].append((name, location))

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
        """Record the input and output of a function if it reads one of the weights."""
        if function not in (*PRODUCT_FUNCTIONS, *MULTIPLY_FUNCTIONS, *NORM_FUNCTIONS) or not isinstance(output, Tensor):
            return
        tensors = [value for value in flatten_once((*args, *kwargs.values())) if isinstance(value, Tensor)]
        for tensor in tensors:
            for full_name, location in self.owners.get(storage_address(tensor), ()):
                name = self.running.value_name(full_name)
                if "norm" in name:
                    self._note_norm(name, location, function, tensors, output)
                elif function in PRODUCT_FUNCTIONS:
                    self._note_map(name, location, function, tensor, tensors, output)

    def _note_norm(
        self, name: str, location: WeightLocation, function: str, tensors: Sequence[Tensor], output: Tensor
    ) -> None:
        if function in NORM_FUNCTIONS:
            self._record(f"{name}.in", tensors[0], location.weight.shape[0])
        elif function not in MULTIPLY_FUNCTIONS or location.bias is not None:
            return
        self._record(f"{name}.out", output, location.weight.shape[0])

    def _note_map(
        self,
        name: str,
        location: WeightLocation,
        function: str,
        weight: Tensor,
        tensors: Sequence[Tensor],
        output: Tensor,
    ) -> None:
        inputs = [operand for operand in tensors if operand is not weight and operand.ndim > 1]
        if len(inputs) != 1:
            return
        self._record(f"{name}.in", inputs[0], location.weight.shape[1])
        if location.bias is None or function in BIAS_FUNCTIONS and any(operand.ndim == 1 for operand in tensors):
            num_columns = output.numel() // self.length
            value = as_token_rows(output, self.length, num_columns)
            if value is not None and num_columns > location.weight.shape[0]:
                value = value[:, location.rows]
            if value is not None and value.shape[1] == location.weight.shape[0]:
                self.values.setdefault(f"{name}.out", value)

    def _record(self, name: str, value: Tensor, width: int) -> None:
        rows = as_token_rows(value, self.length, width)
        if rows is not None:
            self.values.setdefault(name, rows)


def storage_address(tensor: Tensor) -> int:
    """Return the address of a tensor's storage, which all its views share."""
    return tensor.untyped_storage().data_ptr()


def flatten_once(values: Sequence[Any]) -> list[Any]:
    """Flatten the tuples and lists among the values by one level."""
    return [item for value in values for item in (value if isinstance(value, tuple | list) else (value,))]


def as_token_rows(value: Tensor, length: int, width: int) -> Tensor | None:
    """Return the values of one text as (T, n), merging an axis of heads; None for other shapes."""
    if value.numel() != length * width or not value.is_floating_point():
        return None
    value = value.detach().squeeze(0) if value.ndim > 2 else value.detach()
    if value.ndim == 3 and value.shape[0] != length and value.shape[1] == length:
        value = value.transpose(0, 1)
    if value.ndim < 2 or value.shape[0] != length:
        return None
    return value.flatten(1).float().clone()
