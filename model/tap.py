"""Named places in the computation."""

from torch import Tensor, nn


class Tap(nn.Module):
    """The identity, as a module: marks a value that no module of its own returns.

    The attribute path to it is the value's name (`blocks.3.attn.pattern`), and a forward hook on it can read the value
    or, by returning another, change it.
    """

    def forward(self, x: Tensor) -> Tensor:
        return x

    @property
    def is_watched(self) -> bool:
        """Whether a forward hook sits here."""
        return bool(self._forward_hooks)
