"""The experiments' pictures of whether the effects of several changes add up."""

import numpy as np

from explorer.analysis.combination import again, combination
from explorer.explain.analysed.combination import MEASURED, of_all, of_change, of_interaction, of_sum
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.place import as_text
from explorer.explain.point import Point
from explorer.language import N_, _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.tracing.comparison import Comparison
from explorer.views import graph_objects as go
from explorer.views.checks import compared
from explorer.views.explained import explained_token
from explorer.views.style import figure, label

# after the bars of the single changes: what is on the axis, in words, how its number comes about
LAST = (
    (N_("sum"), N_("the sum of the single effects"), of_sum),
    (N_("together"), N_("all together"), of_all),
    (N_("together − sum"), N_("all together less the sum"), of_interaction),
)


def together(comparison: Comparison, query: int, token_id: int, measure: str) -> go.Figure:
    """What each change of the run does alone to a token's "logit" or "probability", and beside that the sum, what all
    do together, and the difference of the two."""
    trace, found = comparison.trace, combination(comparison, query, token_id, measure)
    values = np.array([*found.effects, found.sum, found.joint, found.interaction])
    words, last = [edit.words(trace.config, as_text(trace)) for edit in trace.edits], values[-len(LAST) :]
    before, after = number(found.before), number(found.together)
    told = [
        f"{label(each, longest=60)}: {number(effect)}<br>{before} → {number(alone)}"
        for each, effect, alone in zip(words, found.effects, found.alone, strict=True)
    ]
    told += [f"{look_up(said)}: {number(value)}" for (_name, said, _of), value in zip(LAST, last, strict=True)]
    fig = figure(
        go.Bar(
            x=values,
            y=np.arange(len(values)),
            orientation="h",
            text=told,
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=look_up(
            SHOWN[measure],
            count=len(words),
            token=quoted(trace.vocabulary[token_id]),
            query=quoted(trace.tokens[query]),
            sum=number(found.sum),
            joint=number(found.joint),
            before=before,
            after=after,
        ),
        xaxis={
            "title": {
                "text": _(
                    "{change}: sum {sum}, together {joint}<br>({before} → {after})",
                    change=look_up(MEASURED[measure]),
                    sum=number(found.sum),
                    joint=number(found.joint),
                    before=before,
                    after=after,
                ),
            },
        },
        yaxis={
            "tickvals": np.arange(len(values)),
            "ticktext": [*(label(each, longest=28) for each in words), *(look_up(name) for name, *_rest in LAST)],
            "autorange": "reversed",
            "showgrid": False,
        },
        bargap=0.3,
        hovermode="y",  # a short bar is hard to hit
    )
    return fig.add_hline(len(words) - 0.5, line={"width": 1, "dash": "dot"})


SHOWN = {
    "logit": N_(
        "What {count} changes do to the logit of {token} after {query}: one by one {sum} in sum, all together {joint}, "
        "from {before} to {after}."
    ),
    "probability": N_(
        "What {count} changes do to the probability of {token} after {query}: one by one {sum} in sum, all together "
        "{joint}, from {before} to {after}."
    ),
}


def inspect_together(comparison: Comparison, query: int, token_id: int, measure: str, point: Point) -> Derivation:
    place, count = point.of("item"), len(comparison.trace.edits)
    if place < count:
        return of_change(comparison, query, token_id, measure, place)
    if place >= count + len(LAST):
        raise NoSuchPoint(_("there is no bar {bar}", bar=place))
    return LAST[place - count][2](comparison, query, token_id, measure)


AGAIN = (
    N_("logit and ln p, run again with all changes and with none, against the captured logits"),
    lambda runs, s: again(runs, s.query, explained_token(runs.trace, s)),
)
MARK_OF_TOGETHER = compared("logits", against=AGAIN)
