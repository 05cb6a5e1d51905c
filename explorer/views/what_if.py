"""What a view lets a reader change of the run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from explorer.language import N_, look_up
from explorer.state.interventions import Base, Intervention, Scale, Shift, Zero
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class WhatIf:
    """An intervention and the amounts it can have, for a slider; for a switch where it takes none: 0 off, 1 on.

    Attributes:
        title: beside the slider, to be looked up; in it and in `tap`, fields of the selection stand in braces.
        tap, kind: of the intervention.
        default: the amount at which nothing is changed.
        minimum, maximum, step: of the amount; of its log₁₀ the step, where `log`.
        log: whether the slider moves by factors.
        index: of the intervention, or the field of the selection that says it.
    """

    title: str
    tap: str
    kind: type[Intervention]
    default: float = 0.0
    minimum: float = 0.0
    maximum: float = 1.0
    step: float = 1.0
    log: bool = False
    index: int | str | None = None

    @property
    def is_switch(self) -> bool:
        return self.kind is Zero

    @property
    def text(self) -> str:
        """The intervention's, but for the amount."""
        place = self.tap if self.index is None else f"{self.tap}.{self.index}"
        return f"{place}*{self.kind.operation}"

    def changes(self, edit: Intervention) -> bool:
        """Whether an intervention is this one, by whatever amount."""
        return (type(edit), edit.tap, edit.index) == (self.kind, self.tap, self.index)

    def place(self, amount: float) -> float:
        """Where on the slider an amount is, which runs from `place(minimum)` to `place(maximum)`."""
        return math.log10(amount) if self.log else amount


ROTATION_SHIFT = WhatIf(N_("all positions shifted by"), "rope.angles", Shift, maximum=512)
VECTOR_SHIFT = replace(ROTATION_SHIFT, tap="position_embed")
BASE = WhatIf("θ", "rope.angles", Base, default=10_000, minimum=10, maximum=1_000_000, step=0.05, log=True)
ROTATION_OFF = WhatIf(N_("rotation off"), "rope.angles", Zero)
VECTORS_OFF = replace(ROTATION_OFF, title=N_("position vectors off"), tap="position_embed")


# Of what is chosen. A head is scaled where it still is one: o_proj mixes them. To silence a sublayer is to silence its
# work and not the residual stream; a bias of its output stays.
PART = WhatIf("", "", Scale, default=1, maximum=2, step=0.05)
HEAD = replace(PART, title=N_("head {head} of layer {layer} ×"), tap="blocks.{layer}.attn.z", index="head")
HEADS = replace(PART, title=N_("all heads of layer {layer} ×"), tap="blocks.{layer}.attn.z")
FEED_FORWARD = replace(PART, title=N_("feed-forward of layer {layer} ×"), tap="blocks.{layer}.ffn.hidden")
NEURON = replace(FEED_FORWARD, title=N_("neuron {neuron} of layer {layer} ×"), index="neuron")


def offered(what_ifs: Sequence[WhatIf], trace: Trace, selection: Selection) -> list[tuple[WhatIf, float]]:
    """Those that the model of a run has something for, with its numbers, and the amount each has in the run."""
    offers = [fitted(chosen(what_if, selection), trace) for what_if in what_ifs]
    return [(offer, present(offer, trace)) for offer in offers if offer.tap in trace and offer.maximum > offer.minimum]


def chosen(what_if: WhatIf, selection: Selection) -> WhatIf:
    known = selection.as_dict()
    title, tap = look_up(what_if.title, **known), what_if.tap.format(**known)
    return replace(what_if, title=title, tap=tap, index=known.get(what_if.index, what_if.index))


def fitted(what_if: WhatIf, trace: Trace) -> WhatIf:
    config = trace.config
    if what_if.kind is Base:
        theta = config.rope_theta
        least, most = min(what_if.minimum, theta), max(what_if.maximum, theta)
        return replace(what_if, default=theta, minimum=least, maximum=most)
    if what_if.kind is Shift and config.position == "learned":  # it knows no positions beyond its table
        return replace(what_if, maximum=min(what_if.maximum, config.context_length - len(trace)))
    return what_if


def present(what_if: WhatIf, trace: Trace) -> float:
    amounts = [1.0 if what_if.is_switch else edit.amount for edit in trace.edits if what_if.changes(edit)]
    return amounts[0] if amounts else what_if.default
