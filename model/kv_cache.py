"""Key-value cache."""

from collections.abc import Iterator

import torch
from torch import Tensor


class KVCache:
    """Rotated keys and values of all positions so far, so that a new token attends to them without recomputation.

    Args:
        config: the model's configuration.
        batch_size: number of sequences.
        device, dtype: of the model's weights.

    Attributes:
        length: number of positions filled.
        entries: (num_layers, 2, B, G, context_length, d_head), G = kv_heads; keys are [:, 0], values [:, 1].
    """

    def __init__(self, config, batch_size: int = 1, device: torch.device | str = "cpu", dtype=torch.float32):
        shape = (config.num_layers, 2, batch_size, config.kv_heads, config.context_length, config.d_head)
        self.entries = torch.empty(shape, device=device, dtype=dtype)
        self.length = 0

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store k and v, each (B, G, T, d), after the filled positions; return those of all positions (B, G, K, d).

        The caller advances `length` when every layer has stored its part.
        """
        end = self.length + k.shape[-2]
        keys, values = self.entries[layer].unbind(0)  # (B, G, C, d) each
        keys[..., self.length : end, :] = k
        values[..., self.length : end, :] = v
        # If a model is sharded over several GPUs, layers compute on other devices than the cache's.
        return keys[..., :end, :].to(k.device), values[..., :end, :].to(v.device)

    def extend(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Add one more position of a single sequence, to be filled by the caller.

        Returns:
            for each layer the slot for the new key and value (2, G, d), then the keys and the values of all
            positions, including the new one, (G, K, d) each.

        Raises:
            ValueError: the cache is full.
        """
        if self.length == self.entries.shape[-2]:
            raise ValueError(f"the cache is full: it holds {self.length} positions")
        single = self.entries[:, :, 0]  # (L, 2, G, C, d)
        slots = single.select(-2, self.length)  # (L, 2, G, d)
        self.length += 1
        keys, values = single.narrow(-2, 0, self.length).unbind(1)  # (L, G, K, d) each
        return zip(slots.unbind(), keys.unbind(), values.unbind(), strict=True)
