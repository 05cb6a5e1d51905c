"""Norms of the token's and the position's share of the first layer's input."""

from explorer.analysis.positions import VECTOR_KINDS, token_and_position_norms
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.positions.cosines import FAINT
from explorer.views.style import EMBEDDING, RESIDUAL, SELECTED, figure, positions, token_axis


def norm_bars(trace: Trace, query: int) -> go.Figure:
    """Draw the norms of each token's own vector, of its position's vector, and of their sum."""
    norms, labels = token_and_position_norms(trace), positions(trace.tokens)
    fig = figure(
        [
            go.Bar(
                x=labels,
                y=values,
                name=translate(NAMES[kind]),
                marker={"color": color},
                hovertemplate=translate(HOVER[kind]),
            )
            for kind, values, color in zip(VECTOR_KINDS, norms, (EMBEDDING, FAINT, RESIDUAL), strict=True)
        ],
        alt=_(
            "Lengths at {token}: {own} of the token’s own vector, {position} of its position’s, {sum} of their sum.",
            token=quote_token(trace.tokens[query]),
            own=format_number(norms[0, query]),
            position=format_number(norms[1, query]),
            sum=format_number(norms[2, query]),
        ),
        xaxis={**token_axis(trace.tokens, _("token"), max_labels=24), "tickangle": -60},
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
