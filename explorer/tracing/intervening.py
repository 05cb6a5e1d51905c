"""Edits at work: hooks that put other values in place of those computed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from torch import Tensor, nn

from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.interventions import KINDS, Base, Intervention, Scale, Shift, Zero
from explorer.tracing.hooks import hooked
from model.layers.rope import rotate_adjacent
from model.layers.rope_scaling import rotary_frequencies
from model.transformer_lm import TransformerLM

SINUSOIDAL_BASE = 10000.0
Step = TypeVar("Step")


@contextmanager
def edited(lm: TransformerLM, edits: Sequence[Intervention]) -> Iterator[None]:
    """While the block runs, this thread's passes of the model compute with the edits.

    The block must not span a `yield`: other code may then run on this thread, and the rest on another. See
    `edited_steps`.

    Raises:
        UserError: the model has not what an edit changes; in a pass, learned positions end before those asked for.
    """
    for edit in edits:
        edit.check(lm.config, lm.taps)
    order = list(KINDS)
    with ExitStack() as stack:
        for edit in sorted(edits, key=lambda edit: order.index(edit.operation)):
            module, change = HOOKS[type(edit)](lm, edit)
            stack.enter_context(hooked([module], change))
        yield


def edited_steps(lm: TransformerLM, edits: Sequence[Intervention], steps: Iterator[Step]) -> Iterator[Step]:
    """The steps of `generate`, each computed with the edits; between steps the model is as it was.

    Raises:
        UserError: as `edited`, at the first step.
    """
    while True:
        with edited(lm, edits):
            step = next(steps, None)
        if step is None:
            return
        yield step


# Each is (lm, edit) -> the module to hook, and the hook: (module, inputs, output) -> another output.
Change = tuple[nn.Module, Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]]


def shift(lm: TransformerLM, edit: Shift) -> Change:
    """Position m -> m + n, by the closed form where there is one: no table need reach so far."""
    config = lm.config
    if config.position == "rope":
        more = edit.amount * rotary_frequencies(config.rope_theta, config.d_head, config.rope_scaling)  # (F,) radians
        return lm.rope.angles, lambda module, inputs, angles: angles + more.to(angles)
    if config.position == "sinusoidal":
        # (sin mω, cos mω) turned back by nω is (sin (m + n)ω, cos (m + n)ω).
        turn = -edit.amount * rotary_frequencies(SINUSOIDAL_BASE, config.d_model)  # (D / 2,)
        cos, sin = turn.cos(), turn.sin()
        return lm.position_embed, lambda module, inputs, waves: rotate_adjacent(waves, cos.to(waves), sin.to(waves))

    def later(table: nn.Module, inputs: tuple[Tensor], output: Tensor) -> Tensor:
        (positions,) = inputs
        last, furthest = config.context_length - 1, int(positions.max()) + int(edit.amount)
        if furthest > last:
            told = _("this model learned positions 0 to {last} and knows no others, got {got}", last=last, got=furthest)
            raise UserError(told)
        return table.forward(positions + int(edit.amount))

    return lm.position_embedding, later


def base(lm: TransformerLM, edit: Base) -> Change:
    """The angles of the same positions with another θ, slowed as the model slows them."""
    config = lm.config
    before, after = (
        rotary_frequencies(theta, config.d_head, config.rope_scaling) for theta in (config.rope_theta, edit.amount)
    )

    def turn(module: nn.Module, inputs: tuple[Tensor], angles: Tensor) -> Tensor:
        positions = (angles[..., :1].cpu().double() / before[0]).round()  # (B, T, 1): the first pair is the fastest
        return (positions * after).to(angles)

    return lm.rope.angles, turn


def scale(lm: TransformerLM, edit: Scale) -> Change:
    def multiply(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        changed = output.clone()  # (B, H, …) or (B, T, N)
        part = changed if edit.index is None else changed.select(1 if changed.ndim == 4 else -1, edit.index)
        part.mul_(edit.factor)
        return changed

    return lm.taps[edit.tap], multiply


HOOKS = {Shift: shift, Base: base, Scale: scale, Zero: scale}
