"""Column-major copies of weight matrices for decoding, made once for all generations that run."""

import threading
from collections.abc import Sequence
from functools import cache
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from model.layers.linear import Linear

MAX_PACKED_BYTES = 64 << 20  # bytes of copies, beside those that are in use


class PackedWeights:
    """A cache of stacked matrices in column-major order, keyed by the layers that they were made of.

    Columns of stacked matrices are long, and long runs of memory are read faster. A copy is used as long as the
    weights are unchanged; the check takes a matrix-vector product with each of them, as much as one more token.

    Args:
        max_bytes: bound of all copies together; the least recently used go first, the newest stays in any case.
    """

    def __init__(self, max_bytes: int = MAX_PACKED_BYTES):
        self.max_bytes = max_bytes
        self._copies: WeakKeyDictionary[nn.Module, tuple[Tensor, Tensor]] = WeakKeyDictionary()  # oldest first
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        with self._lock:
            return sum(copy.nbytes for _version, copy in self._copies.values())

    def get_stacked(self, layers: Sequence[Linear], gain: Tensor | None = None) -> Tensor:
        """Return the matrices of layers that read the same vector, stacked to (d_out, D); read-only.

        Each column is multiplied by its element of `gain` (D,).
        """
        version = self._version(layers, gain)
        with self._lock:
            copied_version, copy = self._copies.pop(layers[0], (None, None))
        if copied_version is None or not torch.equal(copied_version, version):
            matrix = torch.cat([layer.weight.detach() for layer in layers])
            if gain is not None:
                matrix.mul_(gain.detach())
            copy = matrix.t().contiguous().t()
        with self._lock:
            self._copies[layers[0]] = version, copy
            total_bytes = sum(cached.nbytes for _copied_version, cached in self._copies.values())
            for layer in list(self._copies)[:-1]:
                if total_bytes <= self.max_bytes:
                    break
                total_bytes -= self._copies.pop(layer)[1].nbytes
        return copy

    def _version(self, layers: Sequence[Linear], gain: Tensor | None) -> Tensor:
        """Return numbers that change if a weight does."""
        checksums = [layer.weight.detach().mv(probe_vector(layer.weight.shape[1])) for layer in layers]
        return torch.cat(checksums if gain is None else [*checksums, gain.detach()])


@cache
def probe_vector(width: int) -> Tensor:
    """Return (width,) random numbers, all different, so that swapped weights change the product."""
    return torch.randn(width, generator=torch.Generator().manual_seed(0))


PACKED_WEIGHTS = PackedWeights()
