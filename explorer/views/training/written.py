"""What training wrote down on its way."""

import numpy as np

from explorer.explain.notation import number
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, FEED_FORWARD, RESIDUAL, figure
from explorer.views.training.steps import leading_to, places, step_axis, with_present_step

# name in training.jsonl -> what it is called, and its colour
LOSSES = {
    "train_loss": (N_("on training text, mean since the point before"), RESIDUAL),
    "validation_loss": (N_("on text held out"), FEED_FORWARD),
}
COPYING = {
    "previous_token_score": (N_("best previous-token head"), ATTENTION),
    "induction_score": (N_("best induction head"), FEED_FORWARD),
}


def has_any(trace: Trace, names: dict) -> bool:
    """Whether the model came with one of some numbers."""
    return trace.training is not None and any(name in trace.training.record for name in names)


def losses(trace: Trace) -> go.Figure:
    """Loss against step, on the text that was trained on and on text that was held out."""
    return _curves(trace, LOSSES, _("loss, nats a token"))


def copying(trace: Trace) -> go.Figure:
    """The best head's previous-token and induction score against step."""
    return _curves(trace, COPYING, _("head score"), range=[-0.02, 1.02])


def _curves(trace: Trace, names: dict, measure: str, **yaxis) -> go.Figure:
    record = trace.training.record
    steps, shown = record["step"], [name for name in names if name in record]
    lines = [
        go.Scatter(
            x=places(steps),
            y=record[name],
            name=look_up(names[name][0]),
            mode="lines+markers",
            marker={"size": 5},
            line={"color": names[name][1], "width": 2},
            text=[_("step {step:,}", step=int(step)) for step in steps],
            customdata=leading_to(trace, steps),
            hovertemplate=_("{what}<br>%{{text}}<br>%{{y:.4g}}<extra></extra>", what=look_up(names[name][0])),
        )
        for name in shown
    ]
    fig = figure(
        lines,
        alt=_(
            "{measure} by training step, {first:,.0f} to {last:,.0f}: {curves}.",
            measure=measure,
            first=steps[0],
            last=steps[-1],
            curves="; ".join(_curve_told(look_up(names[name][0]), record[name]) for name in shown),
        ),
        xaxis=step_axis(steps, kept=trace.training.snapshots),
        yaxis={"title": {"text": measure}, **yaxis},
        hovermode="closest",
        hoverdistance=-1,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0},
    )
    return with_present_step(fig, trace, steps)


def _curve_told(name: str, values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return _("{name} {first} to {last}", name=name, first=number(known[0]), last=number(known[-1]))
