"""Diagnosis view: the differences of the user's own module from the reference."""

from collections.abc import Sequence

import numpy as np

from explorer.diagnosis.report_text import report_lines
from explorer.explain.notation import format_number
from explorer.state.selection import Selection
from explorer.tracing.diagnosis_report import DiagnosisReport, TapComparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL, column_band, figure, row_line
from explorer.views.verification import make_unverified
from explorer.views.view import Panel, View

MIN_RATIO, MAX_RATIO = 1e-3, 1e6  # ratios are clipped to this range


def deviation_by_tap(report: DiagnosisReport) -> go.Figure:
    """Draw each value's deviation from the reference's recomputation of it, as a multiple of the rounding error.

    The reference computes each value from the module's own earlier values. The first difference is framed.
    """
    rows = report.rows
    ratios = np.array([row.times for row in rows])
    bars = go.Bar(
        x=[row.tap for row in rows],
        y=clip_ratios(ratios),
        marker={"color": [component_colour(row.tap) for row in rows]},
        text=[_("not seen") if np.isnan(value) else "" for value in ratios],
        customdata=tap_click_selections(rows),
        hovertext=[tap_hover_text(row) for row in rows],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    fig = figure(
        bars,
        alt=_alt(report),
        xaxis=tap_axis(rows, max_labels=60),
        yaxis={
            "title": {"text": _("times rounding")},
            "type": "log",
            "range": [np.log10(MIN_RATIO), np.log10(MAX_RATIO)],
        },
        shapes=[row_line(1, dash="dot")],
    )
    return mark_first_difference(fig, report)


def deviation_by_position(report: DiagnosisReport) -> go.Figure:
    """Draw each value's (row) deviation at each position (column), as log₁₀ of multiples of the rounding error."""
    rows = [row for row in report.rows if row.by_position]
    ratios = np.array([row.by_position for row in rows])  # (values, T)
    max_log_ratio = max(1.0, float(np.log10(clip_ratios(ratios).max(initial=1.0))))
    return figure(
        go.Heatmap(
            x=list(range(len(report.token_ids))),
            y=[row.tap for row in rows],
            z=np.maximum(np.log10(clip_ratios(ratios)), 0.0),
            zmin=0,
            zmax=max_log_ratio,
            customdata=np.repeat(np.array(tap_click_selections(rows))[:, None], ratios.shape[1], axis=1).tolist(),
            text=[[format_number(value) for value in row] for row in ratios],
            hovertemplate=_("%{y}, position %{x}<br>%{text} times rounding<extra></extra>"),
            colorbar={"title": {"text": _("times rounding, as a power of 10"), "side": "right"}},
        ),
        alt=_(
            "Which of {values} values differ at which of {positions} positions: {count} places do.",
            values=len(rows),
            positions=len(report.token_ids),
            count=int((ratios > 1).sum()),
        ),
        xaxis={"title": {"text": _("position")}, "showgrid": False},
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False, "tickvals": spaced_tap_names(rows, 32)},
    )


def run_difference_by_tap(report: DiagnosisReport) -> go.Figure:
    """Draw the difference of the module's run from the reference's at each value, relative to its largest number."""
    rows = [row for row in report.rows if row.is_recorded]
    shares = np.array([row.apart for row in rows])
    last = shares[-1] if len(shares) else 0.0
    fig = figure(
        go.Scatter(
            x=[row.tap for row in rows],
            y=np.clip(np.nan_to_num(shares, nan=MAX_RATIO, posinf=MAX_RATIO), 1e-9, MAX_RATIO),
            mode="lines+markers",
            line={"color": RESIDUAL, "width": 1},
            marker={"size": 7, "color": [component_colour(row.tap) for row in rows]},
            customdata=tap_click_selections(rows),
            hovertemplate=_("%{x}<br>%{y:.3g} of the reference’s largest number apart<extra></extra>"),
        ),
        alt=_(
            "How far the runs of the module and of the reference have come apart at each of {count} values: at last "
            "{last} of the largest logit.",
            count=len(rows),
            last=format_number(last),
        ),
        xaxis=tap_axis(rows, max_labels=24),
        yaxis={"title": {"text": _("share of the largest number")}, "type": "log"},
    )
    return mark_first_difference(fig, report)


def clip_ratios(times: np.ndarray) -> np.ndarray:
    """Return the ratios clipped to the axis, with the least for NaN."""
    return np.clip(np.nan_to_num(times, nan=MIN_RATIO, posinf=MAX_RATIO), MIN_RATIO, MAX_RATIO)


def mark_first_difference(fig: go.Figure, report: DiagnosisReport) -> go.Figure:
    """Mark the first differing value with two lines."""
    names = [row.tap for row in report.rows]
    if report.first is None or report.differences[0].seen_at not in names:
        return fig
    index = names.index(report.differences[0].seen_at)
    return fig.add_shape(**column_band(index, width=2))


def tap_click_selections(rows: Sequence[TapComparison]) -> list[list[str]]:
    """Return what a click on each value selects: the Activations tab and the value."""
    return [["activations", row.tap] for row in rows]


def tap_hover_text(row: TapComparison) -> str:
    """Return the hover text of a tap's deviation."""
    if not row.is_recorded:
        return _("{tap}<br>not seen: the module has no part that gives it", tap=row.tap)
    return _(
        "{tap}<br>{times} times rounding, off by up to {largest}",
        tap=row.tap,
        times=format_number(row.times),
        largest=format_number(row.largest),
    )


def spaced_tap_names(rows: Sequence[TapComparison], max_labels: int) -> list[str]:
    """Return evenly spaced tap names, about `max_labels` at most."""
    return [row.tap for row in rows][:: -(-len(rows) // max_labels) if rows else 1]


def tap_axis(rows: Sequence[TapComparison], max_labels: int) -> dict:
    """Return a Plotly axis of taps with at most `max_labels` labels."""
    return {"type": "category", "showgrid": False, "tickvals": spaced_tap_names(rows, max_labels)}


def component_colour(tap: str) -> str:
    """Return the colour of the component that a value belongs to."""
    last = tap.removeprefix("blocks.").split(".", 1)[-1]
    if last.endswith("norm"):
        return NORM
    kinds = {"attn": ATTENTION, "ffn": FEED_FORWARD, "embed": EMBEDDING, "logits": EMBEDDING}
    return kinds.get(last.split(".")[0], RESIDUAL)


def _alt(report: DiagnosisReport) -> str:
    if report.is_equal:
        return _("None of {count} values differs by more than rounding explains.", count=len(report.rows))
    return _(
        "Of {count} values {differing} differ by more than rounding explains from what the reference makes of those "
        "before; the first is {first}.",
        count=len(report.rows),
        differing=sum(row.times > 1 for row in report.rows),
        first=report.differences[0].seen_at,
    )


DIAGNOSIS_NOT_VERIFIED = make_unverified(
    N_("found when the app was started, by running the module itself: nothing here checks these numbers")
)
RUN_AT_START = N_("the module was run when the app was started, and is not run again: its values are not here")
ONE_MODULE = N_("These are of the module alone, whatever it is compared with.")


def has_diagnosis(trace: Trace) -> bool:
    """Return whether the model is a user's module with a diagnosis."""
    return trace.diagnosis is not None


def diagnosis_report_text(trace: Trace, selection: Selection) -> str:
    """Return the diagnosis report as text."""
    if trace.diagnosis is None:
        return _("The chosen model is no module of yours: choose it in the list of models.")
    return "\n".join(report_lines(trace.diagnosis))


SHARED = {
    "condition": has_diagnosis,
    "is_selection_independent": True,
    "verify": DIAGNOSIS_NOT_VERIFIED,
    "no_inspection": RUN_AT_START,
    "no_difference_reason": ONE_MODULE,
    "click_selects": {"customdata": ("view", "tap")},
}

VIEW = View(
    name="own_module",
    title=N_("Yours against the reference"),
    group="own",
    order=150,
    requires_own_module=True,
    reads_other_files=True,
    description=N_(
        "Your module beside the reference with the same weights: the first value that differs is where the bug is."
    ),
    formula=diagnosis_report_text,
    required_taps=("logits",),
    unavailable_message=lambda config: _("Too little was captured of this model to compare it."),
    panels=(
        Panel(
            name="values",
            title=N_("Value by value: by how many times as much as rounding explains yours differs"),
            draw=lambda trace, selection: deviation_by_tap(trace.diagnosis),
            height=420,
            **SHARED,
        ),
        Panel(
            name="positions",
            title=N_("The same by position"),
            draw=lambda trace, selection: deviation_by_position(trace.diagnosis),
            height=480,
            width="half",
            **SHARED,
        ),
        Panel(
            name="runs",
            title=N_("How far the two runs have come apart by then"),
            draw=lambda trace, selection: run_difference_by_tap(trace.diagnosis),
            height=480,
            width="half",
            **SHARED,
        ),
    ),
)
