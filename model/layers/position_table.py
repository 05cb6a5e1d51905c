"""Tables with a row for every position."""

import torch
from torch import Tensor, nn


class FixedPositionTable(nn.Module):
    """A table computed from the config: no weight, and in float32 whatever dtype the weights have.

    bfloat16 has 8 significant bits: from position 256 on, neighbours would get the same angle. So a change of
    dtype leaves the table alone. It is recomputed when the module moves to another device, since on the meta
    device it has no values.

    `table` is (context_length, width). A subclass computes the rows in `rows`, and calls `fill` when that is
    possible.
    """

    def __init__(self, context_length: int, width: int):
        super().__init__()
        self.shape = context_length, width

    def rows(self, positions: Tensor) -> Tensor:
        """Return the rows (C, width) of positions (C,) in float64."""
        raise NotImplementedError

    def fill(self, device: torch.device | None = None) -> None:
        """Compute the table on a device; None means the default one."""
        device = device or torch.get_default_device()
        if device.type == "meta":
            table = torch.empty(self.shape, device=device)
        else:
            positions = torch.arange(self.shape[0], dtype=torch.float64, device="cpu")  # not every device has float64
            table = self.rows(positions).to(device, torch.float32)
        self.register_buffer("table", table, persistent=False)

    def _apply(self, fn, recurse=True):
        """Apply `fn` as `.to`, `.half` and `.cuda` do, then recompute the table on the new device."""
        super()._apply(fn, recurse)
        self.fill(self.table.device)
        return self
