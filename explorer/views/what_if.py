"""What a view lets a reader change of the run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from explorer.edits import Edit
from explorer.trace import Trace


@dataclass(frozen=True)
class WhatIf:
    """An edit and the amounts it can have, for a slider; for a switch where it takes none ("zero"): 0 off, 1 on.

    Attributes:
        title: beside the slider.
        tap, operation, index: of the edit.
        default: the amount at which nothing is changed.
        minimum, maximum, step: of the amount; of its log₁₀ the step, where `log`.
        log: whether the slider moves by factors.
    """

    title: str
    tap: str
    operation: str
    default: float = 0.0
    minimum: float = 0.0
    maximum: float = 1.0
    step: float = 1.0
    log: bool = False
    index: int | None = None

    @property
    def is_switch(self) -> bool:
        return self.operation == "zero"

    def changes(self, edit: Edit) -> bool:
        """Whether an edit is this one, by whatever amount."""
        return (edit.tap, edit.operation, edit.index) == (self.tap, self.operation, self.index)

    def place(self, amount: float) -> float:
        """Where on the slider an amount is, which runs from `place(minimum)` to `place(maximum)`."""
        return math.log10(amount) if self.log else amount


ROTATION_SHIFT = WhatIf("all positions shifted by", "rope.angles", "shift", maximum=512)
VECTOR_SHIFT = replace(ROTATION_SHIFT, tap="position_embed")
BASE = WhatIf("θ", "rope.angles", "base", default=10_000, minimum=10, maximum=1_000_000, step=0.05, log=True)
ROTATION_OFF = WhatIf("rotation off", "rope.angles", "zero")


def offered(what_ifs: Sequence[WhatIf], trace: Trace) -> list[tuple[WhatIf, float]]:
    """Those that the model of a run has something for, with its numbers, and the amount each has in the run."""
    offers = [fitted(what_if, trace) for what_if in what_ifs if what_if.tap in trace]
    return [(offer, present(offer, trace)) for offer in offers if offer.maximum > offer.minimum]


def fitted(what_if: WhatIf, trace: Trace) -> WhatIf:
    config = trace.config
    if what_if.operation == "base":
        theta = config.rope_theta
        least, most = min(what_if.minimum, theta), max(what_if.maximum, theta)
        return replace(what_if, default=theta, minimum=least, maximum=most)
    if what_if.operation == "shift" and config.position == "learned":  # it knows no positions beyond its table
        return replace(what_if, maximum=min(what_if.maximum, config.context_length - len(trace)))
    return what_if


def present(what_if: WhatIf, trace: Trace) -> float:
    amounts = [1.0 if what_if.is_switch else edit.amount for edit in trace.edits if what_if.changes(edit)]
    return amounts[0] if amounts else what_if.default
