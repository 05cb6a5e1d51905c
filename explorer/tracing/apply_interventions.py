"""Interventions in a model's passes: hooks that replace computed values."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TypeVar

from explorer.state.errors import UserError
from explorer.state.interventions import CrossRunIntervention, Intervention, sort_interventions
from explorer.tracing.hooks import forward_hooks
from explorer.tracing.interventions import make_hooks
from explorer.tracing.interventions.base import PassContext
from explorer.tracing.patch_values import PatchValues, no_source_message
from model.transformer_lm import TransformerLM

Step = TypeVar("Step")


class InterventionSession:
    """The hooks of a set of interventions, prepared once and activated any number of times.

    Raises:
        UserError: the model has no value that an intervention changes.
    """

    def __init__(self, lm: TransformerLM, interventions: Sequence[Intervention]):
        for intervention in interventions:
            intervention.check(lm.config, lm.taps)
            if isinstance(intervention, CrossRunIntervention) and not isinstance(intervention.source, PatchValues):
                raise UserError(no_source_message())
        self.lm, self.pass_context = lm, PassContext(sort_interventions(interventions, lm.config))
        hooks = [make_hooks(intervention) for intervention in self.pass_context.edits]
        module_hooks = [
            module_hook
            for intervention_hooks in hooks
            for module_hook in intervention_hooks.hooks(lm, self.pass_context)
        ]
        self.module_hooks = module_hooks + [
            observer for intervention_hooks in hooks for observer in intervention_hooks.observers(lm, self.pass_context)
        ]

    @contextmanager
    def active(self) -> Iterator[None]:
        """Apply the interventions to this thread's passes of the model while the block runs."""
        with ExitStack() as stack:
            if self.module_hooks:
                stack.enter_context(self.pass_context.tracking(self.lm))
            for module, hook in self.module_hooks:
                stack.enter_context(forward_hooks([module], hook))
            yield


def needs_only_last_logits(interventions: Sequence[Intervention], num_tokens: int, position: int) -> bool:
    """Return True if `position` is the last and no intervention affects logits: earlier logits are not needed."""
    return position == num_tokens - 1 and not any(intervention.affects("logits") for intervention in interventions)


@contextmanager
def apply_interventions(lm: TransformerLM, interventions: Sequence[Intervention]) -> Iterator[None]:
    """Apply interventions to this thread's passes of the model while the block runs.

    The block must not span a `yield`: other code may then run on this thread, and the rest on another. See
    `generate_with_interventions`.

    Raises:
        UserError: the model has no value that an intervention changes; in a pass, a learned position does not
            exist, a mean is over more tokens than there are, or a query has no key left.
    """
    with InterventionSession(lm, interventions).active() if interventions else nullcontext():
        yield


def generate_with_interventions(
    lm: TransformerLM, interventions: Sequence[Intervention], steps: Iterator[Step]
) -> Iterator[Step]:
    """Yield the steps of `generate`, each computed with the interventions; between steps the model has no hooks.

    Raises:
        UserError: as `apply_interventions`, at the first step.
    """
    session = InterventionSession(lm, interventions)
    while True:
        with session.active():
            step = next(steps, None)
        if step is None:
            return
        yield step
