"""Copies of matrices as a single token reads them fastest, made once for all texts that are being written."""

import threading
from collections.abc import Sequence
from functools import cache
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from model.layers.linear import Linear

MOST_KEPT = 64 << 20  # bytes of copies, beside those that are in use


class CopiedWeights:
    """Stacked matrices, laid out column after column, by the layers that they were made of.

    Columns of stacked matrices are long, and long runs of memory are read faster. A copy is used as long as the weights
    are what they were; to find that out takes a product with each of them, as one more token would.

    Args:
        most_bytes: that copies take which nobody need be using; those used longest ago go first.
    """

    def __init__(self, most_bytes: int = MOST_KEPT):
        self.most_bytes = most_bytes
        self._kept: WeakKeyDictionary[nn.Module, tuple[Tensor, Tensor]] = WeakKeyDictionary()  # oldest first
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        with self._lock:
            return sum(copy.nbytes for _made_of, copy in self._kept.values())

    def stacked(self, layers: Sequence[Linear], gain: Tensor | None = None) -> Tensor:
        """(d_out, D), not to be written to: the matrices of layers that read the same vector, below each other; each
        column times its `gain` (D,)."""
        said = self._said(layers, gain)
        with self._lock:
            made_of, copy = self._kept.pop(layers[0], (None, None))
        if made_of is None or not torch.equal(made_of, said):
            matrix = torch.cat([layer.weight.detach() for layer in layers])
            if gain is not None:
                matrix.mul_(gain.detach())
            copy = matrix.t().contiguous().t()
        with self._lock:
            self._kept[layers[0]] = said, copy
            taken = sum(kept.nbytes for _made_of, kept in self._kept.values())
            for layer in list(self._kept)[:-1]:
                if taken <= self.most_bytes:
                    break
                taken -= self._kept.pop(layer)[1].nbytes
        return copy

    def _said(self, layers: Sequence[Linear], gain: Tensor | None) -> Tensor:
        """Numbers that are others once a weight is."""
        told = [layer.weight.detach().mv(probe(layer.weight.shape[1])) for layer in layers]
        return torch.cat(told if gain is None else [*told, gain.detach()])


@cache
def probe(width: int) -> Tensor:
    """(width,) numbers of which no two are the same, so that none can take another's place unnoticed."""
    return torch.randn(width, generator=torch.Generator().manual_seed(0))


COPIES = CopiedWeights()
