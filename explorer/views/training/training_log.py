"""Curves of the training log."""

import numpy as np

from explorer.explain.notation import format_number
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, FEED_FORWARD, RESIDUAL, figure
from explorer.views.training.step_axis import click_checkpoints, mark_current_step, step_axis, step_axis_positions

# name in training.jsonl -> what it is called, and its colour
LOSSES = {
    "train_loss": (N_("on training text, mean since the point before"), RESIDUAL),
    "validation_loss": (N_("on text held out"), FEED_FORWARD),
}
COPYING = {
    "previous_token_score": (N_("best previous-token head"), ATTENTION),
    "induction_score": (N_("best induction head"), FEED_FORWARD),
}


def has_any_metric(trace: Trace, names: dict) -> bool:
    """Return whether the training log has any of these metrics."""
    return trace.training is not None and any(name in trace.training.record for name in names)


def logged_loss_curves(trace: Trace) -> go.Figure:
    """Draw the loss against the step, on training text and on held-out text."""
    return _curves(trace, LOSSES, _("loss, nats a token"))


def logged_copying_curves(trace: Trace) -> go.Figure:
    """Draw the best head's previous-token and induction score against the step."""
    return _curves(trace, COPYING, _("head score"), range=[-0.02, 1.02])


def _curves(trace: Trace, names: dict, measure: str, **yaxis) -> go.Figure:
    record = trace.training.record
    steps, logged_names = record["step"], [name for name in names if name in record]
    lines = [
        go.Scatter(
            x=step_axis_positions(steps),
            y=record[name],
            name=translate(names[name][0]),
            mode="lines+markers",
            marker={"size": 5},
            line={"color": names[name][1], "width": 2},
            text=[_("step {step:,}", step=int(step)) for step in steps],
            customdata=click_checkpoints(trace, steps),
            hovertemplate=_("{what}<br>%{{text}}<br>%{{y:.4g}}<extra></extra>", what=translate(names[name][0])),
        )
        for name in logged_names
    ]
    fig = figure(
        lines,
        alt=_(
            "{measure} by training step, {first:,.0f} to {last:,.0f}: {curves}.",
            measure=measure,
            first=steps[0],
            last=steps[-1],
            curves="; ".join(_curve_alt(translate(names[name][0]), record[name]) for name in logged_names),
        ),
        xaxis=step_axis(steps, preferred=trace.training.snapshots),
        yaxis={"title": {"text": measure}, **yaxis},
        hovermode="closest",
        hoverdistance=-1,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0},
    )
    return mark_current_step(fig, trace, steps)


def _curve_alt(name: str, values: np.ndarray) -> str:
    finite = values[np.isfinite(values)]
    return _("{name} {first} to {last}", name=name, first=format_number(finite[0]), last=format_number(finite[-1]))
