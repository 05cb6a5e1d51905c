"""A value of every layer, read one layer at a time."""

from collections.abc import Callable, Sequence

import numpy as np


class LazyLayerStack(Sequence):
    """Lazy sequence of one value per layer; converts to an array (L, …).

    Args:
        count: L.
        get: layer -> its array, not cached.
        shape: of one layer's array.
    """

    def __init__(self, count: int, get: Callable[[int], np.ndarray], shape: tuple[int, ...]):
        self.shape, self._get = (count, *shape), get

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, layer: int) -> np.ndarray:
        if not 0 <= layer < len(self):
            raise IndexError(f"no layer {layer} among {len(self)}")
        return self._get(layer)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.stack(list(self)).astype(dtype or np.float32, copy=False)
