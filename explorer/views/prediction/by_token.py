"""The prediction view's picture of what each token contributes, by four methods."""

import textwrap

import numpy as np

from explorer.analysis.token_contributions import METHODS, TokenContributions, token_contributions
from explorer.explain.analysed.token_contributions import again, contribution
from explorer.explain.derivation import Derivation
from explorer.explain.notation import listed, number, quoted
from explorer.explain.point import Point, nth
from explorer.language import N_, _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.checks import worked_out
from explorer.views.explained import explained, logit_of
from explorer.views.style import ATTENTION, EMBEDDING, SELECTED, figure, positions, token_axis

NAMES = {
    "gradient": N_("gradient × input"),
    "integrated": N_("integrated gradients"),
    "rollout": N_("attention rollout"),
    "knock_out": N_("knock-out"),
}
COLOURS = {"gradient": EMBEDDING, "integrated": EMBEDDING, "rollout": ATTENTION, "knock_out": ATTENTION}
GAP = 0.07  # between two rows, as a share of the height


def by_token(trace: Trace, selection: Selection) -> go.Figure:
    """A row of bars over the tokens for every method, each with a scale of its own around 0."""
    query, (token_id, rival_id) = selection.query, explained(trace, selection)
    found = token_contributions(trace, query, token_id, rival_id)
    names = positions(trace.tokens)[: query + 1]
    rows, axes = [], {}
    for row, method in enumerate(METHODS):
        values, axis = found.by[method], str(row + 1) if row else ""
        rows.append(
            go.Bar(
                x=names,
                y=values,
                yaxis=f"y{axis}",
                marker={"color": COLOURS[method]},
                text=[_told(method, name, value) for name, value in zip(names, values, strict=True)],
                textposition="none",
                hovertemplate="%{text}<extra></extra>",
            )
        )
        most, top = float(np.nanmax(np.abs(values), initial=0)) or 1.0, 1 - row / len(METHODS)
        axes[f"yaxis{axis}"] = {
            "range": [-1.1 * most, 1.1 * most],
            "domain": [top - 1 / len(METHODS) + GAP, top],
            "nticks": 5,
        }
        title = {"text": row_title(method, found), "x": 0, "y": top, "showarrow": False, "xanchor": "left"}
        axes.setdefault("annotations", []).append(title | {"xref": "paper", "yref": "paper", "yanchor": "bottom"})
    fig = figure(
        rows,
        alt=_(
            "What each of {count} tokens contributes to {logit} after {token}, by four methods. {agreement}",
            count=query + 1,
            logit=logit_of(trace, token_id, rival_id),
            token=quoted(trace.tokens[query]),
            agreement=agreement(found),
        ),
        xaxis={
            **token_axis(trace.tokens, "<br>".join(textwrap.wrap(agreement(found), 60)), shown=range(query + 1)),
            "range": [-0.5, query + 0.5],
            "tickangle": -60,
            "anchor": f"y{len(METHODS)}",
        },
        **axes,
        showlegend=False,
        bargap=0.15,
        hovermode="x",  # a short bar is hard to hit
    )
    column = {"x0": selection.key - 0.5, "x1": selection.key + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
    return fig.add_shape(type="rect", **column, line={"color": SELECTED, "width": 1})


def row_title(method: str, found: TokenContributions) -> str:
    if method == "integrated":
        return _(
            "integrated gradients in {steps} steps from the mean embedding: Σ {sum}, f − f(baseline) {change}, off by "
            "{error}",
            steps=int(found.arrays["steps"]),
            sum=number(found.by[method].sum()),
            change=number(found.f - found.f_baseline),
            error=number(abs(found.completeness_error)),
        )
    return look_up(TITLES[method], f=number(found.f))


TITLES = {
    "gradient": N_("gradient × input at the embedding; f = {f}"),
    "rollout": N_("attention rollout: shares that sum to 1"),
    "knock_out": N_("knock-out: f less f where no later token sees this one; exact"),
}


def agreement(found: TokenContributions) -> str:
    """How far the methods agree, in a sentence."""
    others = [(name, found.agreement(name, "knock_out")) for name in METHODS[:-1]]
    if not np.isfinite([value for _name, value in others]).all():
        return _("Too few tokens to say how far the methods agree.")
    each = [f"{look_up(NAMES[name])} {number(value)}" for name, value in others]
    return _(
        "Rank correlation with the knock-out, 1 where two put the tokens in the same order: {each}; of the two "
        "gradients with one another {gradients}.",
        each=listed(each),
        gradients=number(found.agreement("gradient", "integrated")),
    )


def _told(method: str, token: str, value: float) -> str:
    if np.isnan(value):
        return _("{token}: nothing comes after it", token=token)
    return f"{token}: {look_up(NAMES[method])} {number(value)}"


def inspect_by_token(trace: Trace, s: Selection, point: Point) -> Derivation | None:
    key, method = point.column, nth(METHODS, point.of("curve"))
    if key > s.query:
        raise NoSuchPoint(_("no bar is after the query"))
    return contribution(trace, s.query, *explained(trace, s), method, key)


MARK_OF_TOKENS = worked_out(
    "embed",
    "blocks.*.attn.pattern",
    "logits",
    against=(
        N_("f of the run that gradients are taken of, against the captured logits"),
        lambda trace, s: again(trace, s.query, *explained(trace, s)),
    ),
)
