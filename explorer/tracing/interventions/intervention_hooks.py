"""What the hooks of all kinds of interventions share."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from explorer.state.interventions import Intervention
from model.transformer_lm import TransformerLM

# The module to hook, and the hook: (module, inputs, output) -> another output, or None to leave it.
Change = tuple[nn.Module, Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor | None]]


class Passes:
    """What hooks know of the pass that they act in, besides its values.

    Attributes:
        edits: all that act, in their order.
        start: at which position the pass begins: after those whose keys and values are cached.
        ids: that it reads.
        scores: of the pass, by the pattern that they become, where a hook asks for them.
    """

    def __init__(self, edits: Sequence[Intervention]):
        self.edits, self.start, self.ids, self.scores = edits, 0, (), {}

    @contextmanager
    def followed(self, lm: TransformerLM) -> Iterator[None]:
        """While the block runs, this thread's passes of the model are."""
        thread = threading.get_ident()

        # Without `kwargs` where the block of another thread ends while this one's pass begins: PyTorch then calls the
        # hook that it has found, and finds no more how.
        def begin(module, args, kwargs=None):
            if threading.get_ident() == thread:
                cache = args[1] if len(args) > 1 else kwargs.get("cache")
                self.start = cache.length if cache else 0
                self.ids = (args[0] if args else kwargs["token_ids"])[0].tolist()

        handle = lm.register_forward_pre_hook(begin, with_kwargs=True)
        try:
            yield
        finally:
            handle.remove()

    def rows(self, edit: Intervention, output: Tensor) -> Tensor:
        """(T, 1) booleans: which of the pass's positions the edit changes, of values (…, T, N)."""
        places = range(self.start, self.start + output.shape[-2])
        chosen = [edit.positions is None or place in edit.positions for place in places]
        return torch.tensor(chosen, device=output.device)[:, None]

    def chosen(self, edit: Intervention, output: Tensor) -> Tensor:
        """Booleans that go with values (B, H, T, N) or (B, T, N): which of them the edit changes."""
        rows = self.rows(edit, output)
        if edit.index is None:
            return rows
        axis = 1 if output.ndim == 4 else -1
        part = torch.arange(output.shape[axis], device=output.device) == edit.index
        return rows & (part[:, None, None] if axis == 1 else part)


@dataclass(frozen=True)
class InterventionHooks:
    """The hooks of an intervention. What they make is worked out again, apart from them, in `analysis/interventions`.

    Attributes:
        edit: whose hooks they are.
    """

    edit: Intervention

    def changes(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        """What acts in a model's passes; UserError where the model does not allow for it."""
        raise NotImplementedError

    def watches(self, lm: TransformerLM, passes: Passes) -> list[Change]:
        """What looks on and changes nothing, after all changes."""
        return []
