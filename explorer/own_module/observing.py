"""What another's module computes, by the names of our values: its parts hooked while it reads some tokens.

Beside what goes into and comes out of the parts that hold weights, every tensor is noted that a sublayer makes on its
way, in which `Seen.holds` finds values that have no part of their own, as scores and pattern.
"""

import math
import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from explorer.own_module.names import Match, Part
from explorer.own_module.products import Products, Running
from explorer.own_module.running import logits_of

PRODUCTS = "matmul", "__matmul__", "bmm", "baddbmm", "einsum", "scaled_dot_product_attention"
AGAIN = " again"  # after the name of what goes into or comes out of a part the second time that it is run
MOST_NOTED = 128 << 20  # bytes of tensors on the way


@dataclass
class Seen:
    """What was seen of a run.

    Attributes:
        token_ids: that it read.
        values: name -> (T, n) float32. Names are those of a module of ours with ".in" or ".out"; "blocks.3.in" and
            "blocks.3.out" of blocks; "logits".
        noted: layer -> tensors that its attention and its feed-forward made.
        order: layers in the order in which their blocks ran, where these are modules.
    """

    token_ids: tuple[int, ...]
    values: dict[str, Tensor] = field(default_factory=dict)
    noted: dict[int, list[Tensor]] = field(default_factory=lambda: defaultdict(list))
    order: list[int] = field(default_factory=list)

    def holds(self, layer: int, wanted: Tensor, causal: bool = False) -> bool:
        """Whether one of the tensors noted is (H, T, n) `wanted`, whatever the order of its axes; but for rounding.

        Args:
            causal: whether what is above the diagonal does not count.
        """
        heads, length, width = wanted.shape
        kept = torch.ones(length, width, dtype=torch.bool).tril() if causal else torch.ones(length, width).bool()
        close = 1e-4 * max(wanted[:, kept].abs().max().item(), 1e-6)
        for tensor in self.noted[layer]:
            for arranged in arrangements(tensor, heads, length, width):
                if (arranged - wanted)[:, kept].abs().max() <= close:
                    return True
        return False


def arrangements(tensor: Tensor, heads: int, length: int, width: int):
    """(H, T, n) from the ways in which people order the axes."""
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


def observe(module: nn.Module, match: Match, token_ids: Sequence[int], vocab_size: int) -> Seen:
    """Run the module and see what goes into and comes out of its parts.

    Raises:
        UserError: the module fails, or what it gives are no logits.
    """
    seen = Seen(tuple(token_ids))
    running = Running()
    products = Products(match.parts, len(token_ids), running)
    noting = _Noting(seen, products)
    with ExitStack() as hooks:
        whole = blocks(module, match)
        running.watch_all(hooks, module)
        for name, path in whole.items():
            running.watch(hooks, module.get_submodule(path), int(name.split(".")[1]), seen.order)
            _hook(hooks, seen, module.get_submodule(path), name, None)
        for layer, path in attentions(module, match).items():
            noting.watch(hooks, module.get_submodule(path), layer)
        for sublayer in ("attn", "ffn"):
            for name, path in _around(module, match, f".{sublayer}").items():
                if path not in whole.values():
                    if sublayer == "ffn":
                        noting.watch(hooks, module.get_submodule(path), int(name.split(".")[1]))
                    _hook(hooks, seen, module.get_submodule(path), f"{name}.{sublayer}", None)
        for name, part in match.parts.items():
            if part.module:
                _hook(hooks, seen, module.get_submodule(part.module), name, part, running)
        hooks.enter_context(noting)
        logits = logits_of(module, token_ids, vocab_size)
    if len(whole) < match.num_layers:  # the others' order is not known
        seen.order.clear()
    seen.values = products.values | seen.values | {"logits": logits}
    return seen


def blocks(module: nn.Module, match: Match) -> dict[str, str]:
    """Of each layer the module that holds all of its parts, where there is one that is run."""
    return _around(module, match, "")


def attentions(module: nn.Module, match: Match) -> dict[int, str]:
    """Of each layer the module that holds its attention's maps, or else the block."""
    whole = blocks(module, match)
    found = {f"blocks.{layer}": whole.get(f"blocks.{layer}") for layer in range(match.num_layers)}
    found |= _around(module, match, ".attn")
    return {int(name.split(".")[1]): path for name, path in found.items() if path}


def _around(module: nn.Module, match: Match, inside: str) -> dict[str, str]:
    found = {}
    for layer in range(match.num_layers):
        name = f"blocks.{layer}"
        paths = [part.within.split(".") for key, part in match.parts.items() if key.startswith(f"{name}{inside}.")]
        common = ".".join(os.path.commonprefix(paths)) if all(paths) else ""
        if common and type(module.get_submodule(common)).forward is not nn.Module.forward:
            found[name] = common
    return found


def _hook(
    hooks: ExitStack, seen: Seen, module: nn.Module, whole: str, part: Part | None, running: Running | None = None
) -> None:
    length = len(seen.token_ids)

    def note(_module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        name = running.name(whole) if running else whole
        rows = part.rows if part else slice(None)
        for end, found in (("in", first_tensor((*args, *kwargs.values()))), ("out", first_tensor((output,)))):
            value = as_rows(found, length)
            key = f"{name}.{end}"
            key = f"{key}{AGAIN}" if key in seen.values else key
            if value is not None and key not in seen.values:
                seen.values[key] = value[:, rows] if end == "out" else value

    hooks.callback(module.register_forward_hook(note, with_kwargs=True).remove)


def first_tensor(values: Sequence[Any]) -> Tensor | None:
    for value in values:
        value = value[0] if isinstance(value, tuple | list) and value else value
        if isinstance(value, Tensor) and value.is_floating_point():
            return value
    return None


def as_rows(value: Tensor | None, length: int) -> Tensor | None:
    """(T, n) of (1, T, n) or (T, n); None of anything else."""
    if value is None or value.numel() % length:
        return None
    value = value.detach().squeeze(0) if value.ndim > 2 else value.detach()
    return value.float().clone() if value.ndim == 2 and len(value) == length else None


class _Noting(TorchFunctionMode):
    """Keeps what functions give while a layer's attention runs, and what those give that read weights."""

    def __init__(self, seen: Seen, products: Products):
        super().__init__()
        self.seen, self.products, self.layer, self.left = seen, products, None, MOST_NOTED

    def watch(self, hooks: ExitStack, module: nn.Module, layer: int) -> None:
        def begin(*_told):
            self.layer = layer

        def end(*_told):
            self.layer = None

        hooks.callback(module.register_forward_pre_hook(begin).remove)
        hooks.callback(module.register_forward_hook(end).remove)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        self.products.note(getattr(function, "__name__", ""), args, kwargs or {}, found)
        if self.layer is not None:
            read = (
                args if getattr(function, "__name__", "") in PRODUCTS else ()
            )  # what was filled in by assignment, too
            for tensor in (*read, *(found if isinstance(found, tuple | list) else (found,))):
                self._note(tensor)
        return found

    def _note(self, tensor: Any) -> None:
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point() or tensor.ndim < 2:
            return
        size = math.prod(tensor.shape) * 4
        if tensor.numel() >= len(self.seen.token_ids) ** 2 // 2 and size <= self.left:
            self.left -= size
            layer, self.layer = self.layer, None  # what follows is ours
            self.seen.noted[layer].append(tensor.detach().float().clone())
            self.layer = layer
