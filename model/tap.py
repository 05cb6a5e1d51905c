"""Hook points: named values in the computation."""

from torch import Tensor, nn


class Tap(nn.Module):
    """A hook point: the identity as a module, for a value that no other module returns.

    The attribute path to it is the value's name (`blocks.3.attn.pattern`), and a forward hook on it can read the
    value or, by returning another, change it.
    """

    def forward(self, x: Tensor) -> Tensor:
        return x

    @property
    def has_hooks(self) -> bool:
        """True if a forward hook is attached."""
        return bool(self._forward_hooks)
