"""Pictures of a diagnosis, a place for every value in the order of the computation."""

from collections.abc import Sequence

import numpy as np

from explorer.explain.notation import number
from explorer.language import _
from explorer.tracing.diagnosis import Report, Row
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL, SELECTED, figure

LEAST, MOST = 1e-3, 1e6  # what is drawn of numbers that reach from nothing to infinity


def values_apart(report: Report) -> go.Figure:
    """By how many times as much as rounding explains each value differs from what the reference makes of those before
    it; the first place framed."""
    rows = report.rows
    times = np.array([row.times for row in rows])
    bars = go.Bar(
        x=[row.tap for row in rows],
        y=clipped(times),
        marker={"color": [colour(row.tap) for row in rows]},
        text=[_("not seen") if np.isnan(value) else "" for value in times],
        customdata=leading_to(rows),
        hovertext=[told(row) for row in rows],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    fig = figure(
        bars,
        alt=_alt(report),
        xaxis=tap_axis(rows, most=60),
        yaxis={"title": {"text": _("times rounding")}, "type": "log", "range": [np.log10(LEAST), np.log10(MOST)]},
        bargap=0.2,
    )
    fig.add_hline(1, line={"color": RESIDUAL, "width": 1, "dash": "dot"})
    return framed(fig, report)


def by_position(report: Report) -> go.Figure:
    """The same of each value (row) at each position (column), as orders of magnitude above what rounding explains."""
    rows = [row for row in report.rows if row.by_position]
    times = np.array([row.by_position for row in rows])  # (values, T)
    most = max(1.0, float(np.log10(clipped(times).max(initial=1.0))))
    return figure(
        go.Heatmap(
            x=list(range(len(report.token_ids))),
            y=[row.tap for row in rows],
            z=np.maximum(np.log10(clipped(times)), 0.0),
            zmin=0,
            zmax=most,
            autocolorscale=True,
            customdata=np.repeat(np.array(leading_to(rows))[:, None], times.shape[1], axis=1).tolist(),
            text=[[number(value) for value in row] for row in times],
            hovertemplate=_("%{y}, position %{x}<br>%{text} times rounding<extra></extra>"),
            colorbar={"title": {"text": _("times rounding, as a power of 10"), "side": "right"}},
        ),
        alt=_(
            "Which of {values} values differ at which of {positions} positions: {count} places do.",
            values=len(rows),
            positions=len(report.token_ids),
            count=int((times > 1).sum()),
        ),
        xaxis={"title": {"text": _("position")}, "showgrid": False},
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False, "tickvals": written(rows, 32)},
    )


def runs_apart(report: Report) -> go.Figure:
    """How far each value of the module's run is from the same of the reference's, as a share of its largest number."""
    rows = [row for row in report.rows if row.is_seen]
    shares = np.array([row.apart for row in rows])
    last = shares[-1] if len(shares) else 0.0
    fig = figure(
        go.Scatter(
            x=[row.tap for row in rows],
            y=np.clip(np.nan_to_num(shares, nan=MOST, posinf=MOST), 1e-9, MOST),
            mode="lines+markers",
            line={"color": RESIDUAL, "width": 1},
            marker={"size": 7, "color": [colour(row.tap) for row in rows]},
            customdata=leading_to(rows),
            hovertemplate=_("%{x}<br>%{y:.3g} of the reference’s largest number apart<extra></extra>"),
        ),
        alt=_(
            "How far the runs of the module and of the reference have come apart at each of {count} values: at last "
            "{last} of the largest logit.",
            count=len(rows),
            last=number(last),
        ),
        xaxis=tap_axis(rows, most=24),
        yaxis={"title": {"text": _("share of the largest number")}, "type": "log"},
    )
    return framed(fig, report)


def clipped(times: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num(times, nan=LEAST, posinf=MOST), LEAST, MOST)


def framed(fig: go.Figure, report: Report) -> go.Figure:
    """With the first place where they part between two lines."""
    names = [row.tap for row in report.rows]
    if report.first is None or report.differences[0].seen_at not in names:
        return fig
    place = names.index(report.differences[0].seen_at)
    return fig.add_vrect(place - 0.5, place + 0.5, line={"color": SELECTED, "width": 2})


def leading_to(rows: Sequence[Row]) -> list[list[str]]:
    """What a click selects: the value, in the tab that shows it by itself."""
    return [["activations", row.tap] for row in rows]


def told(row: Row) -> str:
    if not row.is_seen:
        return _("{tap}<br>not seen: the module has no part that gives it", tap=row.tap)
    return _(
        "{tap}<br>{times} times rounding, off by up to {largest}",
        tap=row.tap,
        times=number(row.times),
        largest=number(row.largest),
    )


def written(rows: Sequence[Row], most: int) -> list[str]:
    """Of many names every so many."""
    return [row.tap for row in rows][:: -(-len(rows) // most) if rows else 1]


def tap_axis(rows: Sequence[Row], most: int) -> dict:
    return {"type": "category", "tickangle": -60, "showgrid": False, "tickvals": written(rows, most)}


def colour(tap: str) -> str:
    """Of the component that a value belongs to."""
    last = tap.removeprefix("blocks.").split(".", 1)[-1]
    if last.endswith("norm"):
        return NORM
    kinds = {"attn": ATTENTION, "ffn": FEED_FORWARD, "embed": EMBEDDING, "logits": EMBEDDING}
    return kinds.get(last.split(".")[0], RESIDUAL)


def _alt(report: Report) -> str:
    if report.is_equal:
        return _("None of {count} values differs by more than rounding explains.", count=len(report.rows))
    return _(
        "Of {count} values {differing} differ by more than rounding explains from what the reference makes of those "
        "before; the first is {first}.",
        count=len(report.rows),
        differing=sum(row.times > 1 for row in report.rows),
        first=report.differences[0].seen_at,
    )
