"""Base class of intervention hooks, and the state of a forward pass that they share."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from explorer.state.interventions import Intervention
from model.transformer_lm import TransformerLM

# The module to hook, and the hook: (module, inputs, output) -> another output, or None to leave it.
ModuleHook = tuple[nn.Module, Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor | None]]


class PassContext:
    """The state of the current forward pass, besides its values.

    Attributes:
        edits: all active interventions, in order.
        start: position at which the pass starts: the number of cached positions before it.
        ids: token ids of the pass.
        scores: attention scores by the name of their pattern, stored while a hook needs them.
    """

    def __init__(self, interventions: Sequence[Intervention]):
        self.edits, self.start, self.ids, self.scores = interventions, 0, (), {}

    @contextmanager
    def tracking(self, lm: TransformerLM) -> Iterator[None]:
        """Record position and token ids of each pass that this thread runs while the block runs."""
        thread = threading.get_ident()

        # Without `kwargs` where the block of another thread ends while this one's pass begins: PyTorch then calls the
        # hook that it has found, and finds no more how.
        def on_pass_start(module, args, kwargs=None):
            if threading.get_ident() == thread:
                cache = args[1] if len(args) > 1 else kwargs.get("cache")
                self.start = cache.length if cache else 0
                self.ids = (args[0] if args else kwargs["token_ids"])[0].tolist()

        handle = lm.register_forward_pre_hook(on_pass_start, with_kwargs=True)
        try:
            yield
        finally:
            handle.remove()

    def position_mask(self, intervention: Intervention, output: Tensor) -> Tensor:
        """Return the positions of the pass that an intervention changes, as (T, 1) booleans for values (…, T, N)."""
        positions = range(self.start, self.start + output.shape[-2])
        is_changed = [intervention.positions is None or position in intervention.positions for position in positions]
        return torch.tensor(is_changed, device=output.device)[:, None]

    def selection_mask(self, intervention: Intervention, output: Tensor) -> Tensor:
        """Return the elements that an intervention changes, as booleans.

        They broadcast to values (B, H, T, N) or (B, T, N).
        """
        rows = self.position_mask(intervention, output)
        if intervention.index is None:
            return rows
        axis = 1 if output.ndim == 4 else -1
        is_selected = torch.arange(output.shape[axis], device=output.device) == intervention.index
        return rows & (is_selected[:, None, None] if axis == 1 else is_selected)


@dataclass(frozen=True)
class InterventionHooks:
    """The hooks of an intervention; `explorer.analysis.interventions` recomputes their results independently.

    Attributes:
        intervention: the intervention whose hooks they are.
    """

    intervention: Intervention

    def hooks(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        """Return the modules and hooks that apply the intervention.

        Raises:
            UserError: the model does not allow it.
        """
        raise NotImplementedError

    def observers(self, lm: TransformerLM, pass_context: PassContext) -> list[ModuleHook]:
        """Return hooks that only read values, and run after all changes."""
        return []
