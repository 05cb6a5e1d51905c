"""How much of what the first layer reads is the token’s own vector, and how much its position’s."""

from explorer.analysis.positions import PARTS, lengths
from explorer.explain.notation import number, quoted
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.positions.likeness import FAINT
from explorer.views.style import EMBEDDING, RESIDUAL, SELECTED, figure, positions, token_axis


def shares(trace: Trace, query: int) -> go.Figure:
    """How long each token's own vector is, the position's, and their sum."""
    found, places = lengths(trace), positions(trace.tokens)
    fig = figure(
        [
            go.Bar(
                x=places,
                y=values,
                name=look_up(NAMES[part]),
                marker={"color": color},
                hovertemplate=look_up(HOVER[part]),
            )
            for part, values, color in zip(PARTS, found, (EMBEDDING, FAINT, RESIDUAL), strict=True)
        ],
        alt=_(
            "Lengths at {token}: {own} of the token’s own vector, {position} of its position’s, {sum} of their sum.",
            token=quoted(trace.tokens[query]),
            own=number(found[0, query]),
            position=number(found[1, query]),
            sum=number(found[2, query]),
        ),
        xaxis={**token_axis(trace.tokens, _("token"), most=24), "tickangle": -60},
        yaxis={"title": {"text": _("length ‖x‖₂")}, "rangemode": "tozero"},
        barmode="group",
        bargap=0.3,
        hovermode="x",  # a short bar is hard to hit
    )
    fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 1})
    return fig


NAMES = {"token": N_("the token’s own vector"), "position": N_("the position’s"), "sum": N_("their sum")}


HOVER = {
    "token": N_("token %{x}<br>length of the token’s own vector %{y:.4g}<extra></extra>"),
    "position": N_("token %{x}<br>length of the position’s %{y:.4g}<extra></extra>"),
    "sum": N_("token %{x}<br>length of their sum %{y:.4g}<extra></extra>"),
}
