"""The axis of training steps, and the marker of the current step."""

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from explorer.tracing.trace import Trace
from explorer.tracing.training_history import log2_step
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.style import SELECTED

MAX_TICKS = 7


def runs_by_step(trace: Trace) -> dict[int, Trace]:
    """Return the run of the same tokens at every checkpoint of the training, by step; empty without checkpoints."""
    return {step: run for step, (_lm, run) in trace.at_training_steps().items()}


def step_axis_positions(steps: Sequence[float]) -> np.ndarray:
    """Return the coordinates of steps on the logarithmic axis; step 0, which has no logarithm, is at 1/2."""
    return np.maximum(np.asarray(steps, float), 0.5)


def step_axis(
    steps: Sequence[float], title: str = "", right_margin: float = 0.0, preferred: Collection[int] = ()
) -> dict[str, Any]:
    """Return the settings of a logarithmic axis of steps.

    Args:
        right_margin: right of the last one, as a fraction of the axis.
        preferred: steps that are labelled instead, if enough of them are on the axis.
    """
    first, last = (
        math.log10(position) for position in (step_axis_positions(steps).min(), step_axis_positions(steps).max())
    )
    margin = 0.03 * (last - first) or 0.1
    ticks = tick_steps([step for step in preferred if min(steps) <= step <= max(steps)])
    ticks = ticks if len(ticks) > 2 else tick_steps(steps)
    return {
        "type": "log",
        "range": [first - margin, last + margin + right_margin * (last - first)],
        "tickvals": step_axis_positions(ticks).tolist(),
        "ticktext": [f"{step:,.0f}" for step in ticks],
        "title": {"text": title or _("training step")},
    }


def tick_steps(steps: Sequence[float]) -> list[float]:
    """Return the steps to label in ascending order, thinned backwards from the last one."""
    ordered = sorted(set(steps), key=log2_step, reverse=True)
    if not ordered:
        return []
    min_gap = max(0.7, (log2_step(ordered[0]) - log2_step(ordered[-1])) / MAX_TICKS)
    ticks = ordered[:1]
    for step in ordered[1:]:
        if log2_step(ticks[-1]) - log2_step(step) >= min_gap - 1e-9:
            ticks.append(step)
    if ticks[-1] != ordered[-1]:  # the first step has priority over its neighbour
        ticks[-1 if len(ticks) > 1 and log2_step(ticks[-1]) - log2_step(ordered[-1]) < min_gap else len(ticks) :] = (
            ordered[-1:]
        )
    return ticks[::-1]


def mark_current_step(fig: go.Figure, trace: Trace, steps: Sequence[float]) -> go.Figure:
    """Return the figure with a line at the current step, if it is on the axis."""
    step = trace.training.step
    if step is not None and min(steps) <= step <= max(steps):
        fig.add_vline(float(step_axis_positions([step])[0]), line={"color": SELECTED, "width": 2})
    return fig


def click_checkpoints(trace: Trace, steps: Sequence[float]) -> list[str] | None:
    """Return the checkpoint that a click on each point opens; None if the model has none."""
    training = trace.training
    return [training.nearest(step) for step in steps] if training.snapshots else None
