"""Simulated device that computes on the CPU, refuses tensors of other devices, and, as Apple's, has no float64.

Code that leaves a tensor on the wrong device therefore fails on machines without a GPU, too. It cannot show how a
GPU rounds, nor how fast it is.

Importing this adds the device to the process's PyTorch, which has room for one. Its name is one that safetensors and
accelerate know; the hardware of that name brings a PyTorch of its own.
"""

import torch
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "npu"
_aten = torch.ops.aten
_COPIES = {_aten._to_copy.default, _aten.copy_.default, _aten._copy_from.default}
_INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
_CREATE = ("empty.memory_format", "empty_strided")
_MOVE = ("_to_copy", "copy_", "_copy_from", "detach", "alias")


class DeviceTensor(torch.Tensor):
    """Tensor that reports the simulated device and stores its numbers in a CPU tensor."""

    @staticmethod
    def __new__(cls, data: torch.Tensor, requires_grad: bool = False):
        if data.is_meta:  # accelerate creates parameters of the existing class
            return torch.nn.Parameter(data, requires_grad)
        numbers = data.numbers if isinstance(data, DeviceTensor) else data
        if numbers.dtype == torch.float64:
            raise TypeError(f"{NAME} has no float64, as MPS has none")
        layout = {"strides": numbers.stride(), "storage_offset": numbers.storage_offset(), "dtype": numbers.dtype}
        tensor = torch.Tensor._make_wrapper_subclass(cls, numbers.shape, device=torch.device(NAME, 0), **layout)
        tensor.numbers = numbers
        return tensor

    def __repr__(self) -> str:
        return f"{self.numbers!r} on {NAME}"

    def __tensor_flatten__(self):  # its presence makes modules swap converted parameters as a whole
        return ["numbers"], None

    @staticmethod
    def __tensor_unflatten__(parts: dict, context, shape, strides) -> "DeviceTensor":
        return DeviceTensor(parts["numbers"])

    def __deepcopy__(self, memo: dict) -> torch.Tensor:
        copy = DeviceTensor(self.detach().numbers.clone())
        copy = torch.nn.Parameter(copy, self.requires_grad) if isinstance(self, torch.nn.Parameter) else copy
        return memo.setdefault(id(self), copy)

    def tolist(self) -> list:
        return self.numbers.tolist()

    def data_ptr(self) -> int:
        return self.numbers.data_ptr()

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return _compute(operation, args, kwargs or {})


def _compute(operation, args: tuple, kwargs: dict):
    _check_devices(operation, args, kwargs)
    leaves = tree_leaves((args, kwargs))
    inside = {id(leaf.numbers): leaf for leaf in leaves if isinstance(leaf, DeviceTensor)}
    requested_devices = [leaf.type for leaf in leaves if isinstance(leaf, torch.device)]
    stays = operation._schema.name == "aten::copy_" and not isinstance(args[0], DeviceTensor)
    result = operation(*tree_map(_on_cpu, args), **tree_map(_on_cpu, kwargs))
    if stays or requested_devices and requested_devices[0] != NAME:
        return tree_map(lambda value: value.clone() if id(value) in inside else value, result)

    def on_device(value):
        return inside[id(value)] if id(value) in inside else DeviceTensor(value)

    is_view = any(returned.alias_info and not returned.alias_info.is_write for returned in operation._schema.returns)
    # a tensor and its views share a version counter, or neither has one
    with torch.inference_mode(args[0].is_inference() if is_view else torch.is_inference_mode_enabled()):
        return tree_map_only(torch.Tensor, on_device, result)


def _on_cpu(value):
    if isinstance(value, DeviceTensor):
        return value.numbers
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == NAME else value


def _check_devices(operation, args: tuple, kwargs: dict):
    """Raise RuntimeError for tensors on different devices, by CUDA's rules.

    Allowed are a copy's other end, single numbers, and indices on the CPU.
    """
    if operation in _COPIES:
        return
    if operation._schema.name in _INDEXING:
        args = (args[0], *args[2:])
    for value in tree_leaves((args, kwargs)):
        if isinstance(value, torch.Tensor) and value.dim() and not isinstance(value, DeviceTensor):
            raise RuntimeError(f"{operation} is given {tuple(value.shape)} on {value.device} and others on {NAME}")


def _kernel(operation):
    return lambda *args, **kwargs: _compute(operation, args, kwargs)


class _Backend(_DummyBackendModule):
    def get_rng_state(self) -> torch.Tensor:  # random numbers are the CPU's
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor):
        torch.set_rng_state(state)


_setup_privateuseone_for_python_backend(NAME, _Backend())
_kernels = [torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")]  # active while referenced
_kernels[0].fallback(lambda operation, *args, **kwargs: _compute(operation, args, kwargs), "PrivateUse1")
for _name in (*_CREATE, *_MOVE):
    _packet, _, _overload = _name.partition(".")
    _kernels[1].impl(_name, _kernel(getattr(getattr(_aten, _packet), _overload or "default")), "PrivateUse1")
