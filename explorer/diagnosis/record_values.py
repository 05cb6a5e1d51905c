"""Record another module's values by our names, with hooks on its submodules and by the weights it uses."""

import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from explorer.diagnosis.match_weights import MatchedModule, WeightMatch
from explorer.diagnosis.run_module import run_module

PRODUCT_FUNCTIONS = "linear", "matmul", "__matmul__", "mm", "bmm", "einsum", "addmm"
BIAS_FUNCTIONS = "linear", "addmm"
MULTIPLY_FUNCTIONS = "mul", "__mul__", "__rmul__", "multiply"
NORM_FUNCTIONS = "layer_norm", "rms_norm"


class CurrentBlockTracker:
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

    def __init__(self, matched_modules: Mapping[str, MatchedModule], length: int, running: CurrentBlockTracker):
        self.length, self.values, self.running = length, {}, running
        self.owners: dict[int, list[tuple[str, MatchedModule]]] = defaultdict(list)
        for name, matched in matched_modules.items():
            if not name.endswith("embedding"):
                self.owners[storage_address(matched.weight)].append((name, matched))

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
        """Record the input and output of a function if it reads one of the weights."""
        if function not in (*PRODUCT_FUNCTIONS, *MULTIPLY_FUNCTIONS, *NORM_FUNCTIONS) or not isinstance(output, Tensor):
            return
        tensors = [value for value in flatten_once((*args, *kwargs.values())) if isinstance(value, Tensor)]
        for tensor in tensors:
            for full_name, matched in self.owners.get(storage_address(tensor), ()):
                name = self.running.value_name(full_name)
                if "norm" in name:
                    self._note_norm(name, matched, function, tensors, output)
                elif function in PRODUCT_FUNCTIONS:
                    self._note_map(name, matched, function, tensor, tensors, output)

    def _note_norm(
        self, name: str, matched: MatchedModule, function: str, tensors: Sequence[Tensor], output: Tensor
    ) -> None:
        if function in NORM_FUNCTIONS:
            self._record(f"{name}.in", tensors[0], matched.weight.shape[0])
        elif function not in MULTIPLY_FUNCTIONS or matched.bias is not None:
            return
        self._record(f"{name}.out", output, matched.weight.shape[0])

    def _note_map(
        self,
        name: str,
        matched: MatchedModule,
        function: str,
        weight: Tensor,
        tensors: Sequence[Tensor],
        output: Tensor,
    ) -> None:
        inputs = [operand for operand in tensors if operand is not weight and operand.ndim > 1]
        if len(inputs) != 1:
            return
        self._record(f"{name}.in", inputs[0], matched.weight.shape[1])
        if matched.bias is None or function in BIAS_FUNCTIONS and any(operand.ndim == 1 for operand in tensors):
            num_columns = output.numel() // self.length
            value = as_token_rows(output, self.length, num_columns)
            if value is not None and num_columns > matched.weight.shape[0]:
                value = value[:, matched.rows]
            if value is not None and value.shape[1] == matched.weight.shape[0]:
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


PRODUCTS = "matmul", "__matmul__", "bmm", "baddbmm", "einsum", "scaled_dot_product_attention"
SECOND_RUN = " again"  # suffix of values from a submodule's second run
MAX_NOTED_BYTES = 128 << 20  # bytes of tensors on the way


@dataclass
class RecordedValues:
    """The values recorded in a run.

    Attributes:
        token_ids: the tokens read.
        values: name -> (T, n) float32. Names are those of our modules with ".in" or ".out"; "blocks.3.in" and
            "blocks.3.out" of blocks; "logits".
        intermediates: layer -> tensors that its attention and its feed-forward computed.
        order: layers in the order in which their blocks ran, where these are modules.
    """

    token_ids: tuple[int, ...]
    values: dict[str, Tensor] = field(default_factory=dict)
    intermediates: dict[int, list[Tensor]] = field(default_factory=lambda: defaultdict(list))
    order: list[int] = field(default_factory=list)

    def contains(self, layer: int, expected: Tensor, causal: bool = False) -> bool:
        """Return whether recorded intermediates equal `expected` (H, T, n) within rounding, in any axis order.

        They are one tensor, or one a head.

        Args:
            causal: whether to ignore the values above the diagonal.
        """
        heads, length, width = expected.shape
        mask = torch.ones(length, width, dtype=torch.bool).tril() if causal else torch.ones(length, width).bool()
        close = 1e-4 * max(expected[:, mask].abs().max().item(), 1e-6)
        for tensor in self.intermediates[layer]:
            for arranged in iter_head_layouts(tensor, heads, length, width):
                if (arranged - expected)[:, mask].abs().max() <= close:
                    return True
        return heads > 1 and all(self.contains(layer, head[None], causal) for head in expected)


def iter_head_layouts(tensor: Tensor, heads: int, length: int, width: int):
    """Yield a tensor as (H, T, n) for each usual order of the axes that fits its shape."""
    if tensor.numel() != heads * length * width:
        return
    shape = tuple(size for size in tensor.shape if size != 1)
    if shape == tuple(size for size in (heads, length, width) if size != 1):
        yield tensor.reshape(heads, length, width)
    if shape == tuple(size for size in (length, heads, width) if size != 1):
        yield tensor.reshape(length, heads, width).transpose(0, 1)
    if shape == tuple(size for size in (heads, width, length) if size != 1):
        yield tensor.reshape(heads, width, length).transpose(1, 2)
    if shape == (length, heads * width):
        yield tensor.reshape(length, heads, width).transpose(0, 1)


def record_values(module: nn.Module, match: WeightMatch, token_ids: Sequence[int], vocab_size: int) -> RecordedValues:
    """Run the module and record the inputs and outputs of its submodules.

    Raises:
        UserError: the module fails, or its output is no logits.
    """
    recorded = RecordedValues(tuple(token_ids))
    running = CurrentBlockTracker()
    weight_uses = WeightUseRecorder(match.matched_modules, len(token_ids), running)
    op_recorder = _OpRecorder(recorded, weight_uses)
    with ExitStack() as hooks:
        paths_by_block = block_paths(module, match)
        running.watch_all(hooks, module)
        for name, path in paths_by_block.items():
            running.watch(hooks, module.get_submodule(path), int(name.split(".")[1]), recorded.order)
            _hook(hooks, recorded, module.get_submodule(path), name, None)
        for layer, path in attention_paths(module, match).items():
            op_recorder.watch(hooks, module.get_submodule(path), layer)
        for sublayer in ("attn", "ffn"):
            for name, path in _common_paths(module, match, f".{sublayer}").items():
                if path not in paths_by_block.values():
                    if sublayer == "ffn":
                        op_recorder.watch(hooks, module.get_submodule(path), int(name.split(".")[1]))
                    _hook(hooks, recorded, module.get_submodule(path), f"{name}.{sublayer}", None)
        for name, matched in match.matched_modules.items():
            if matched.module:
                _hook(hooks, recorded, module.get_submodule(matched.module), name, matched, running)
            for head, path in enumerate(matched.heads):
                _hook(hooks, recorded, module.get_submodule(path), f"{name}.{head}", None, running)
        hooks.enter_context(op_recorder)
        logits = run_module(module, token_ids, vocab_size)
    if len(paths_by_block) < match.num_layers:  # the order of the other blocks is unknown
        recorded.order.clear()
    _join_head_values(recorded, match)
    recorded.values = weight_uses.values | recorded.values | {"logits": logits}
    return recorded


def _join_head_values(recorded: RecordedValues, match: WeightMatch) -> None:
    """Join what was recorded of heads that are modules of their own, where all of them ran."""
    for name, matched in match.matched_modules.items():
        for end in ("in", "out", f"in{SECOND_RUN}", f"out{SECOND_RUN}") if matched.heads else ():
            parts = [recorded.values.pop(f"{name}.{head}.{end}", None) for head in range(len(matched.heads))]
            if all(part is not None for part in parts):
                recorded.values[f"{name}.{end}"] = parts[0] if end.startswith("in") else torch.cat(parts, -1)


def block_paths(module: nn.Module, match: WeightMatch) -> dict[str, str]:
    """Return for each layer the path of the module that holds all its weights, if there is one that runs."""
    return _common_paths(module, match, "")


def attention_paths(module: nn.Module, match: WeightMatch) -> dict[int, str]:
    """Return for each layer the path of the module that holds the attention's maps, or else of the block."""
    whole_blocks = block_paths(module, match)
    paths = {f"blocks.{layer}": whole_blocks.get(f"blocks.{layer}") for layer in range(match.num_layers)}
    paths |= _common_paths(module, match, ".attn")
    return {int(name.split(".")[1]): path for name, path in paths.items() if path}


def _common_paths(module: nn.Module, match: WeightMatch, inside: str) -> dict[str, str]:
    common_paths = {}
    for layer in range(match.num_layers):
        name = f"blocks.{layer}"
        paths = [
            matched.within.split(".")
            for key, matched in match.matched_modules.items()
            if key.startswith(f"{name}{inside}.")
        ]
        common = ".".join(os.path.commonprefix(paths)) if all(paths) else ""
        if common and type(module.get_submodule(common)).forward is not nn.Module.forward:
            common_paths[name] = common
    return common_paths


def _hook(
    hooks: ExitStack,
    recorded: RecordedValues,
    module: nn.Module,
    value_name: str,
    matched: MatchedModule | None,
    running: CurrentBlockTracker | None = None,
) -> None:
    length = len(recorded.token_ids)

    def note(_module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        name = running.value_name(value_name) if running else value_name
        rows = matched.rows if matched else slice(None)
        for end, tensor in (("in", first_tensor((*args, *kwargs.values()))), ("out", first_tensor((output,)))):
            value = as_2d_rows(tensor, length)
            key = f"{name}.{end}"
            key = f"{key}{SECOND_RUN}" if key in recorded.values else key
            if value is not None and key not in recorded.values:
                recorded.values[key] = value[:, rows] if end == "out" else value

    hooks.callback(module.register_forward_hook(note, with_kwargs=True).remove)


def first_tensor(values: Sequence[Any]) -> Tensor | None:
    """Return the first floating-point tensor, also within a tuple or list; None without one."""
    for value in values:
        value = value[0] if isinstance(value, tuple | list) and value else value
        if isinstance(value, Tensor) and value.is_floating_point():
            return value
    return None


def as_2d_rows(value: Tensor | None, length: int) -> Tensor | None:
    """Return (1, T, n) or (T, n) as (T, n); None for anything else."""
    if value is None or value.numel() % length:
        return None
    value = value.detach().squeeze(0) if value.ndim > 2 else value.detach()
    return value.float().clone() if value.ndim == 2 and len(value) == length else None


class _OpRecorder(TorchFunctionMode):
    """Records outputs of functions while a layer's sublayer runs, and uses of weights by functions."""

    def __init__(self, recorded: RecordedValues, weight_uses: WeightUseRecorder):
        super().__init__()
        self.recorded, self.weight_uses, self.layer, self.remaining_bytes = recorded, weight_uses, None, MAX_NOTED_BYTES

    def watch(self, hooks: ExitStack, module: nn.Module, layer: int) -> None:
        def begin(*_arguments):
            self.layer = layer

        def end(*_arguments):
            self.layer = None

        hooks.callback(module.register_forward_pre_hook(begin).remove)
        hooks.callback(module.register_forward_hook(end).remove)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.weight_uses.note(getattr(function, "__name__", ""), args, kwargs or {}, result)
        if self.layer is not None:
            read = (
                args if getattr(function, "__name__", "") in PRODUCTS else ()
            )  # includes operands that were filled by assignment
            for tensor in (*read, *(result if isinstance(result, tuple | list) else (result,))):
                self._note(tensor)
        return result

    def _note(self, tensor: Any) -> None:
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point() or tensor.ndim < 2:
            return
        size = math.prod(tensor.shape) * 4
        if tensor.numel() >= len(self.recorded.token_ids) ** 2 // 2 and size <= self.remaining_bytes:
            self.remaining_bytes -= size
            layer, self.layer = self.layer, None  # do not record our own operations
            self.recorded.intermediates[layer].append(tensor.detach().float().clone())
            self.layer = layer
