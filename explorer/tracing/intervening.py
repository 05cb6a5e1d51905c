"""Interventions in a model's passes: hooks that put other values in place of those computed."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TypeVar

from explorer.state.errors import UserError
from explorer.state.interventions import FromOther, Intervention, in_order
from explorer.tracing.donation import Donation, no_other
from explorer.tracing.hooks import hooked
from explorer.tracing.interventions import hooks_of
from explorer.tracing.interventions.intervention_hooks import Passes
from model.transformer_lm import TransformerLM

Step = TypeVar("Step")


class Edited:
    """A model's passes with edits, worked out once and entered as often as it takes.

    Raises:
        UserError: the model has not what an edit changes.
    """

    def __init__(self, lm: TransformerLM, edits: Sequence[Intervention]):
        for edit in edits:
            edit.check(lm.config, lm.taps)
            if isinstance(edit, FromOther) and not isinstance(edit.source, Donation):
                raise UserError(no_other())
        self.lm, self.passes = lm, Passes(in_order(edits, lm.config))
        hooks = [hooks_of(edit) for edit in self.passes.edits]
        changes = [change for each in hooks for change in each.changes(lm, self.passes)]
        self.changes = changes + [watch for each in hooks for watch in each.watches(lm, self.passes)]

    @contextmanager
    def passing(self) -> Iterator[None]:
        """While the block runs, this thread's passes of the model compute with the edits."""
        with ExitStack() as stack:
            if self.changes:
                stack.enter_context(self.passes.followed(self.lm))
            for module, change in self.changes:
                stack.enter_context(hooked([module], change))
            yield


def reads_last_alone(edits: Sequence[Intervention], num_tokens: int, position: int) -> bool:
    """Whether of a pass that is asked for the logits after a position nobody reads any others."""
    return position == num_tokens - 1 and not any(edit.reaches("logits") for edit in edits)


@contextmanager
def edited(lm: TransformerLM, edits: Sequence[Intervention]) -> Iterator[None]:
    """While the block runs, this thread's passes of the model compute with the edits.

    The block must not span a `yield`: other code may then run on this thread, and the rest on another. See
    `edited_steps`.

    Raises:
        UserError: the model has not what an edit changes; in a pass, learned positions end before those asked for, a
            mean is over more tokens than there are, or a query has nothing left to look at.
    """
    with Edited(lm, edits).passing() if edits else nullcontext():
        yield


def edited_steps(lm: TransformerLM, edits: Sequence[Intervention], steps: Iterator[Step]) -> Iterator[Step]:
    """The steps of `generate`, each computed with the edits; between steps the model is as it was.

    Raises:
        UserError: as `edited`, at the first step.
    """
    changed = Edited(lm, edits)
    while True:
        with changed.passing():
            step = next(steps, None)
        if step is None:
            return
        yield step
