"""The pictures of a direction: where the stream has it, and what it does to other prompts."""

import numpy as np

from explorer.analysis.steering import Effects, chosen_direction, cosines, effects
from explorer.explain.analysed.steering import along, effect
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.place import as_text
from explorer.explain.point import Point, nth
from explorer.language import _
from explorer.state.interventions import Recipe
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.explained import explained
from explorer.views.style import RESIDUAL, SELECTED, figure, label, positions, token_axis


def direction_of(trace: Trace, selection: Selection) -> Recipe:
    return chosen_direction(trace, selection.direction)


def projection(trace: Trace, selection: Selection) -> go.Figure:
    """The cosine of every token's stream (column) at every depth (row) with the direction; a frame around the chosen
    token."""
    recipe, query = direction_of(trace, selection), selection.query
    values = cosines(trace, trace.direction(recipe))  # (L + 1, T)
    most = np.unravel_index(np.abs(values).argmax(), values.shape)
    largest = float(np.abs(values).max()) or 1.0
    rows = [_("embedding"), *(_("after layer {layer}", layer=layer) for layer in range(len(values) - 1))]
    fig = figure(
        go.Heatmap(
            x=positions(trace.tokens),
            y=rows,
            z=values,
            zmin=-largest,
            zmax=largest,
            autocolorscale=True,
            customdata=np.repeat(np.maximum(0, np.arange(len(rows)) - 1)[:, None], len(trace), axis=1),
            hovertemplate=_("token %{x}, %{y}<br>cosine %{z:.3g}<extra></extra>"),
            colorbar={"title": {"text": _("cosine"), "side": "right"}},
        ),
        alt=_(
            "Cosine of the stream of {tokens} tokens at {depths} depths with {direction}: largest in size, {value}, at "
            "{token}, {depth}.",
            tokens=len(trace),
            depths=len(rows),
            direction=recipe.words(as_text(trace)),
            value=number(values[most]),
            token=quoted(trace.tokens[most[1]]),
            depth=rows[most[0]],
        ),
        xaxis={**token_axis(trace.tokens, _("token")), "tickangle": -60},
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category"},
    )
    return fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 2})


def found_effects(trace: Trace, selection: Selection) -> Effects:
    token_id, rival_id = explained(trace, selection)
    if rival_id is None:
        rival_id = explained(trace, Selection(query=selection.query, target=2 if selection.target == 1 else 1))[0]
    return effects(trace, direction_of(trace, selection), selection.layer, token_id, rival_id)


def examples(trace: Trace, selection: Selection) -> go.Figure:
    """What adding the direction does after every example, the largest effect first."""
    found = found_effects(trace, selection)
    order = np.argsort(-found.changes, kind="stable")
    values, wanted = found.changes[order], np.sign(found.edit.amount)
    names = [label(trace.text(found.prompts[i]), longest=28) for i in order]
    return figure(
        go.Bar(
            x=values,
            y=np.arange(len(values)),
            orientation="h",
            marker={"color": [SELECTED if value * wanted < 0 else RESIDUAL for value in values]},
            text=[
                f"{label(trace.text(found.prompts[i]), longest=80)}<br>"
                f"{number(found.before[i])} → {number(found.after[i])}: {number(found.changes[i])}"
                for i in order
            ],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "{change}: how it changes by how much the logit of {token} is above that of {rival} after each of {count} "
            "prompts, from {least} to {most}; {backwards} go backwards.",
            least=number(values.min()),
            most=number(values.max()),
            token=quoted(trace.vocabulary[found.token_id]),
            rival=quoted(trace.vocabulary[found.rival_id]),
            change=found.edit.words(trace.config, as_text(trace)),
            backwards=found.backwards,
            count=len(names),
        ),
        xaxis={
            "title": {
                "text": _(
                    "change of the logit of {token} less that of {rival};<br>{backwards} of {count} go backwards (red)",
                    token=label(trace.vocabulary[found.token_id]),
                    rival=label(trace.vocabulary[found.rival_id]),
                    backwards=found.backwards,
                    count=len(names),
                )
            }
        },
        yaxis={"tickvals": np.arange(len(names)), "ticktext": names, "autorange": "reversed", "showgrid": False},
        bargap=0.3,
        hovermode="y",  # a short bar is hard to hit
    )


def inspect_projection(trace: Trace, s: Selection, point: Point) -> Derivation:
    return along(trace, direction_of(trace, s), point.row, point.column)


def inspect_example(trace: Trace, s: Selection, point: Point) -> Derivation:
    found = found_effects(trace, s)
    order = np.argsort(-found.changes, kind="stable").tolist()
    return effect(trace, found, nth(order, point.of("item")))
