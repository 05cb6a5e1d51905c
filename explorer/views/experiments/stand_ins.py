"""The experiments' pictures of what stands in for what was silenced: whose direct contributions to a logit grow."""

import numpy as np

from explorer.analysis.attribution import Attribution, attribution, is_put_in
from explorer.analysis.norms import norm_scale
from explorer.architecture.stream import has_final_norm, input_of
from explorer.explain.analysed.stand_ins import grown_head, grown_part
from explorer.explain.derivation import Derivation
from explorer.explain.notation import added, number, quoted
from explorer.explain.point import Point, nth
from explorer.language import _
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views import graph_objects as go
from explorer.views.explained import explained, logit_of
from explorer.views.logit_bars import components, parts_in_order
from explorer.views.style import SELECTED, figure


def grown_heads(comparison: Comparison, selection: Selection) -> go.Figure:
    """By how much more every head adds to the explained logit than in the unchanged run; row = layer.

    Colours end at the most that is gained or lost by a head that still adds anything: what was silenced would hide it.
    """
    trace, query, (token_id, rival_id) = comparison.trace, selection.query, explained(comparison.trace, selection)
    after, before = (found.heads for found in _both(comparison, selection))  # (L, H)
    values = after - before
    others = np.where(after == 0, 0, values)
    largest = float(np.abs(others).max()) or 1.0
    most = np.unravel_index(others.argmax(), others.shape)
    fig = figure(
        go.Heatmap(
            z=values,
            zmin=-largest,
            zmax=largest,
            autocolorscale=True,
            text=[[added(value) for value in row] for row in values],
            customdata=np.stack((before, after), axis=-1),
            texttemplate="%{text}" if values.shape[1] <= 12 else None,
            hovertemplate=_(
                "layer %{y} head %{x}<br>adds %{customdata[1]:.4f}, unchanged %{customdata[0]:.4f}<br>%{z:+.4f}"
                "<extra></extra>"
            ),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": _("adds more, or less"), "side": "right"}},
        ),
        alt=_(
            "By how much more or less {heads} heads add to {logit} after {token} than in the unchanged run: of those "
            "that still add anything most gained {gain}, layer {layer} head {head}.",
            heads=values.size,
            logit=logit_of(trace, token_id, rival_id),
            token=quoted(trace.tokens[query]),
            gain=number(others[most]),
            layer=most[0],
            head=most[1],
        ),
        xaxis={"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        yaxis={"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    )
    layer, head = selection.layer, selection.head
    corners = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
    return fig.add_shape(type="rect", **corners, line={"color": SELECTED, "width": 3})


def grown_parts(comparison: Comparison, selection: Selection) -> go.Figure:
    """The same of every part that the logit is the sum of; the bars add up to its change."""
    trace, query, (token_id, rival_id) = comparison.trace, selection.query, explained(comparison.trace, selection)
    found, put_in = _both(comparison, selection), is_put_in(trace)
    bars = list(zip(*(components(trace, each, changes=put_in) for each in found), strict=True))
    names, _values, colours, told, layers = zip(*(after for after, _before in bars), strict=True)
    after, before = np.array([[bar[1] for bar in pair] for pair in bars]).T
    values, change = after - before, found[0].logit - found[1].logit
    most = int(values.argmax())
    each = [
        _(
            "{part}: adds {after}, unchanged {before}<br>{change}",
            part=part,
            after=number(a),
            before=number(b),
            change=number(a - b),
        )
        for part, a, b in zip(told, after, before, strict=True)
    ]
    return figure(
        go.Bar(
            x=np.arange(len(values)),
            y=values,
            marker={"color": colours},
            text=each,
            textposition="none",
            customdata=[selection.layer if of is None else of for of in layers],
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "By how much more or less {count} parts add to {logit} after {token} than in the unchanged run, {change} "
            "in sum: {part} gained most, {gain}.",
            count=len(values),
            logit=logit_of(trace, token_id, rival_id),
            token=quoted(trace.tokens[query]),
            change=number(change),
            part=told[most],
            gain=number(values[most]),
        ),
        xaxis={
            "tickvals": np.arange(len(names)),
            "ticktext": names,
            "tickangle": -60,
            "showgrid": False,
            "title": {"text": norms(comparison, query)},
        },
        yaxis={"title": {"text": _("adds more, or less;<br>in sum {change}", change=number(change))}},
        bargap=0.2,
        hovermode="x",  # a short bar is hard to hit
    )


def norms(comparison: Comparison, query: int) -> str:
    """By what each run's norms divided."""
    config = comparison.trace.config
    if not has_final_norm(config):
        return _("each run’s norms divide by what they did in that run")
    last = input_of(config, "final_norm")
    after, before = (norm_scale(run, run[last][query], "final_norm", query) for run in comparison.runs)
    return _(
        "the final norm divides by {after}, unchanged by {before}:<br>that alone multiplies each part by {times}",
        after=number(after),
        before=number(before),
        times=number(before / after),
    )


def _both(comparison: Comparison, selection: Selection) -> list[Attribution]:
    """Of the changed run, and of the unchanged one."""
    token_id, rival_id = explained(comparison.trace, selection)
    return [attribution(run, selection.query, token_id, rival_id) for run in comparison.runs]


def inspect_grown_head(comparison: Comparison, s: Selection, point: Point) -> Derivation:
    return grown_head(comparison, s.query, *explained(comparison.trace, s), point.row, point.column)


def inspect_grown_part(comparison: Comparison, s: Selection, point: Point) -> Derivation:
    part, layer = nth(parts_in_order(comparison.trace), point.of("item"))
    return grown_part(comparison, s.query, *explained(comparison.trace, s), part, layer)
