"""The axis of training steps, and which of them is looked at."""

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.tracing.training import place_of
from explorer.views import graph_objects as go
from explorer.views.style import SELECTED

MOST_TICKS = 7


def runs_by_step(trace: Trace) -> dict[int, Trace]:
    """The same tokens read by the model at every step that it was kept at; none where it was not kept on the way."""
    return {step: run for step, (_lm, run) in trace.at_steps().items()}


def places(steps: Sequence[float]) -> np.ndarray:
    """Where steps stand on the axis: 0, which has no logarithm, at 1/2."""
    return np.maximum(np.asarray(steps, float), 0.5)


def step_axis(steps: Sequence[float], title: str = "", room: float = 0.0, kept: Collection[int] = ()) -> dict[str, Any]:
    """Settings of a logarithmic axis of steps.

    Args:
        room: right of the last one, as a share of the axis.
        kept: steps whose numbers are written there rather, where enough of them lie on it.
    """
    first, last = (math.log10(place) for place in (places(steps).min(), places(steps).max()))
    margin = 0.03 * (last - first) or 0.1
    ticks = ticked([step for step in kept if min(steps) <= step <= max(steps)])
    ticks = ticks if len(ticks) > 2 else ticked(steps)
    return {
        "type": "log",
        "range": [first - margin, last + margin + room * (last - first)],
        "tickvals": places(ticks).tolist(),
        "ticktext": [f"{step:,.0f}" for step in ticks],
        "title": {"text": title or _("training step")},
    }


def ticked(steps: Sequence[float]) -> list[float]:
    """From the last one back, those far enough from one another to be written."""
    ordered = sorted(set(steps), key=place_of, reverse=True)
    if not ordered:
        return []
    apart = max(0.7, (place_of(ordered[0]) - place_of(ordered[-1])) / MOST_TICKS)
    found = ordered[:1]
    for step in ordered[1:]:
        if place_of(found[-1]) - place_of(step) >= apart - 1e-9:
            found.append(step)
    if found[-1] != ordered[-1]:  # the beginning is worth more than one near it
        found[-1 if len(found) > 1 and place_of(found[-1]) - place_of(ordered[-1]) < apart else len(found) :] = ordered[
            -1:
        ]
    return found[::-1]


def with_present_step(fig: go.Figure, trace: Trace, steps: Sequence[float]) -> go.Figure:
    """The figure with a line at the step that is looked at, where its steps reach so far."""
    step = trace.training.step
    if step is not None and min(steps) <= step <= max(steps):
        fig.add_vline(float(places([step])[0]), line={"color": SELECTED, "width": 2})
    return fig


def leading_to(trace: Trace, steps: Sequence[float]) -> list[str] | None:
    """For each point the checkpoint that a click goes to; None where the model was not kept on the way."""
    training = trace.training
    return [training.nearest(step) for step in steps] if training.snapshots else None
