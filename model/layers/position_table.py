"""Tables with a row for every position."""

import torch
from torch import Tensor, nn


class PositionTable(nn.Module):
    """A table that follows from the config: no weight, and in float32 whatever dtype the weights have.

    bfloat16 has 8 significant bits: from position 256 on, neighbours would get the same angle. So a change of dtype
    passes the table by. It is computed anew wherever the module goes, as on the meta device it has no values to bring.

    `table` is (context_length, width). What a row holds a subclass says in `rows`, and calls `fill` when that can be
    computed.
    """

    def __init__(self, context_length: int, width: int):
        super().__init__()
        self.shape = context_length, width

    def rows(self, positions: Tensor) -> Tensor:
        """Positions (C,) in float64 -> their rows (C, width)."""
        raise NotImplementedError

    def fill(self, device: torch.device | None = None) -> None:
        """Compute the table for a device, the default one if None."""
        device = device or torch.get_default_device()
        if device.type == "meta":
            table = torch.empty(self.shape, device=device)
        else:
            positions = torch.arange(self.shape[0], dtype=torch.float64, device="cpu")  # not every device has float64
            table = self.rows(positions).to(device, torch.float32)
        self.register_buffer("table", table, persistent=False)

    def _apply(self, fn, recurse=True):
        """What `.to`, `.half`, `.cuda` and the like do to a module."""
        super()._apply(fn, recurse)
        self.fill(self.table.device)
        return self
