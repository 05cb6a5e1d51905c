"""A device that computes on the CPU and, as GPUs do, with nothing that lies elsewhere, and as Apple's do not in
float64: what is left on the wrong one fails where there is no GPU, too. How one rounds, and how fast it is, this cannot
show.

To import this adds the device to the process's PyTorch, which has room for one. Its name is one that safetensors and
accelerate know; the hardware called so brings a PyTorch of its own.
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
    """A tensor on the device: it tells that it is there, and its numbers are in one on the CPU."""

    @staticmethod
    def __new__(cls, data: torch.Tensor, requires_grad: bool = False):
        if data.is_meta:  # accelerate makes parameters of the class that it found
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

    def __tensor_flatten__(self):  # that it has this tells a module to swap a converted parameter as a whole
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
    _check_places(operation, args, kwargs)
    leaves = tree_leaves((args, kwargs))
    inside = {id(leaf.numbers): leaf for leaf in leaves if isinstance(leaf, DeviceTensor)}
    asked_for = [leaf.type for leaf in leaves if isinstance(leaf, torch.device)]
    stays = operation._schema.name == "aten::copy_" and not isinstance(args[0], DeviceTensor)
    found = operation(*tree_map(_on_cpu, args), **tree_map(_on_cpu, kwargs))
    if stays or asked_for and asked_for[0] != NAME:
        return tree_map(lambda value: value.clone() if id(value) in inside else value, found)

    def on_device(value):
        return inside[id(value)] if id(value) in inside else DeviceTensor(value)

    is_view = any(each.alias_info and not each.alias_info.is_write for each in operation._schema.returns)
    # PyTorch counts the changes of what it was given and of what looks at it together, or of neither
    with torch.inference_mode(args[0].is_inference() if is_view else torch.is_inference_mode_enabled()):
        return tree_map_only(torch.Tensor, on_device, found)


def _on_cpu(value):
    if isinstance(value, DeviceTensor):
        return value.numbers
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == NAME else value


def _check_places(operation, args: tuple, kwargs: dict):
    """CUDA's rules: all tensors on the device, but for a copy's other end, single numbers, and indices on the CPU."""
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
_kernels = [torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")]  # act while they live
_kernels[0].fallback(lambda operation, *args, **kwargs: _compute(operation, args, kwargs), "PrivateUse1")
for _name in (*_CREATE, *_MOVE):
    _packet, _, _overload = _name.partition(".")
    _kernels[1].impl(_name, _kernel(getattr(getattr(_aten, _packet), _overload or "default")), "PrivateUse1")
