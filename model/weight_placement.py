"""Placement of a model's weights on devices as they are read, and of memory that is freed."""

import ctypes
from collections.abc import Callable, Iterable
from functools import cache
from typing import Protocol

import torch
from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.layers.positions import FixedPositionTable
from model.transformer_lm import TransformerLM

ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def limit_malloc_arenas(max_arenas: int = 2):
    """Limit the number of malloc arenas for threads that start from now on; no effect without glibc.

    By default glibc uses up to eight per core, and memory freed in one thread's arena is not available to
    another's.
    """
    if mallopt := _libc_function("mallopt"):
        mallopt(ARENA_MAX, max_arenas)


def trim_heap():
    """Return freed memory inside the heaps to the system; no effect without glibc.

    Otherwise each arena stays as large as it once was, and its pages are of no use to another.
    """
    if malloc_trim := _libc_function("malloc_trim"):
        malloc_trim(0)


@cache
def _libc_function(name: str) -> Callable[..., int] | None:
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, TypeError, AttributeError):  # another system, another library
        return None


TRIM_AFTER_BYTES = 16 << 20  # bytes of weights
MAX_TABLE_NUMBERS = 1 << 26  # numbers of a table of positions: a million positions of heads 128 wide


class Placement(Protocol):
    """Interface for placing the weights of one model."""

    def begin(self, lm: TransformerLM, dtype: torch.dtype) -> None:
        """Prepare for a model whose weights are not read yet; `dtype` is the type of most of them."""

    def place_weight(self, name: str, weight: Tensor) -> Tensor:
        """Return the tensor that the model is to use for this weight; the caller drops `weight`."""

    def finish(self, lm: TransformerLM) -> None:
        """Complete the placement after all weights are set."""


class SingleDevicePlacement:
    """Placement of all weights on one device."""

    def __init__(self, device: str | torch.device = "cpu"):
        self.device = torch.device(device)

    def begin(self, lm: TransformerLM, dtype: torch.dtype) -> None:
        pass

    def place_weight(self, name: str, weight: Tensor) -> Tensor:
        return weight.to(self.device)

    def finish(self, lm: TransformerLM) -> None:
        lm.to(self.device)


def build_model(
    config: ModelConfig,
    weights: Iterable[tuple[str, Tensor]],
    dtype: torch.dtype = torch.float32,
    placement: Placement | None = None,
) -> TransformerLM:
    """Build the model of a config, in eval mode, from all weights that `weight_shapes` names.

    Each weight is placed before the next is read.

    Args:
        dtype: of most weights.
        placement: of the weights; None: in the memory of the CPU.
    """
    placement = placement or SingleDevicePlacement()
    with torch.device("meta"):  # nothing is drawn at random: every weight is given
        lm = TransformerLM(config)
    for table in (module for module in lm.modules() if isinstance(module, FixedPositionTable)):
        if table.table.numel() > MAX_TABLE_NUMBERS:
            raise ModelError(
                "positions up to {most:,} need a table of {numbers:,} numbers",
                most=config.context_length,
                numbers=table.table.numel(),
            )
        table.fill(torch.device("cpu"))
    placement.begin(lm, dtype)
    placed_weights, bytes_read = {}, 0
    for name, weight in weights:
        placed_weights[name], bytes_read = placement.place_weight(name, weight), bytes_read + weight.nbytes
        del weight  # before the next is read
        if (
            bytes_read >= TRIM_AFTER_BYTES
        ):  # else transposed and converted weights leave the heap fragmented, by a third of the weights
            bytes_read = 0
            trim_heap()
    trim_heap()
    lm.load_state_dict(placed_weights, strict=False, assign=True)
    if config.tie_embeddings:
        lm.lm_head.weight = lm.token_embedding.weight
    lm.eval().requires_grad_(False)
    placement.finish(lm)
    return lm
