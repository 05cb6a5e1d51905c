"""Pictures of what reaches the prediction of two runs."""

import numpy as np

from explorer.analysis.attribution import attribution, is_put_in
from explorer.analysis.parting import next_tokens as probabilities
from explorer.explain.analysed.attribution import logit_part
from explorer.explain.analysed.prediction import probability
from explorer.explain.derivation import Derivation
from explorer.explain.notation import added, number, quoted
from explorer.explain.point import Point, nth
from explorer.explain.source import Source
from explorer.language import _
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.explained import explained, logit_of
from explorer.views.logit_bars import components, parts_in_order
from explorer.views.run_bars import run_axis, run_bars
from explorer.views.style import RESIDUAL, figure, label
from explorer.views.two_runs.difference import Incomparable
from explorer.views.two_runs.selection import selection_in_other

BARS = 8


def questions(comparison: Comparison, selection: Selection) -> list[tuple[Trace, int, int, int | None]]:
    """Of both runs the token, and what is explained of it: arguments of `attribution`."""
    looks = (comparison.trace, selection), (comparison.other, selection_in_other(comparison, selection))
    return [(trace, look.query, *explained(trace, look)) for trace, look in looks]


def parts(comparison: Comparison, selection: Selection) -> go.Figure:
    """What each part adds to the explained logit in A less what it adds in B."""
    found = questions(comparison, selection)
    taken = [attribution(*question) for question in found]
    mine, theirs = (
        list(components(asked[0], adds, are_put_in(comparison))) for asked, adds in zip(found, taken, strict=True)
    )
    if [bar[0] for bar in mine] != [bar[0] for bar in theirs]:
        raise Incomparable(_("A and B are models of different parts: look at them in turn."))
    names, values, colours, _told, layers = zip(*mine, strict=True)
    others = [bar[1] for bar in theirs]
    less = np.subtract(values, others)
    logit = logit_of(found[0][0], *found[0][2:])
    return figure(
        go.Bar(
            x=np.arange(len(names)),
            y=less,
            marker={"color": colours},
            customdata=[selection.layer if layer is None else layer for layer in layers],
            text=[_bar_told(*each) for each in zip(names, values, others, strict=True)],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        alt=_(
            "What each of {count} parts adds to {logit}, A − B: {less} altogether; the most {most}, {part}.",
            count=len(names),
            logit=logit,
            less=number(taken[0].logit - taken[1].logit),
            most=added(less[np.abs(less).argmax()]),
            part=names[np.abs(less).argmax()],
        ),
        xaxis={"tickvals": np.arange(len(names)), "ticktext": names, "tickangle": -60, "showgrid": False},
        yaxis={"title": {"text": _("A − B; of the whole logit {less}", less=number(taken[0].logit - taken[1].logit))}},
        bargap=0.2,
        hovermode="x",
    )


def are_put_in(comparison: Comparison) -> bool:
    """Whether edits of either run put anything into the stream, which then has a bar."""
    return any(is_put_in(run) for run in (comparison.trace, comparison.other))


def _bar_told(name: str, mine: float, theirs: float) -> str:
    return _("{part}: {a} in A, {b} in B", part=name, a=added(mine), b=added(theirs))


def likeliest(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Ids of the tokens likeliest in either run, the likeliest first.

    Raises:
        Incomparable: the models have no token in common.
    """
    if np.isnan(theirs).all():
        raise Incomparable(_("The models of A and B have no token in common."))
    return np.argsort(-np.fmax(mine, theirs), kind="stable")[:BARS]


def next_tokens(comparison: Comparison, query: int) -> go.Figure:
    """The tokens likeliest in either run, a bar for each."""
    trace = comparison.trace
    mine, theirs = probabilities(comparison, query)
    shown = likeliest(mine, theirs)
    names = [label(trace.vocabulary[i], longest=12) for i in shown]

    return figure(
        [run_bars("B", theirs[shown], names, color=RESIDUAL), run_bars("A", mine[shown], names)],
        alt=_(
            "Next token after {token}: likeliest in A {a}, {mine}; in B {b}, {theirs}.",
            token=quoted(trace.tokens[query]),
            a=quoted(trace.vocabulary[mine.argmax()]),
            mine=number(mine.max()),
            b=quoted(trace.vocabulary[int(np.nanargmax(theirs))]),
            theirs=number(np.nanmax(theirs)),
        ),
        xaxis={"range": [0, 1.2 * float(np.fmax(mine, theirs).max())], "title": {"text": _("probability")}},
        yaxis=run_axis(names),
        bargap=0.2,
    )


def inspect_part(comparison: Comparison, selection: Selection, point: Point) -> tuple[Derivation, ...]:
    """Of a bar what the part adds in A, and in B."""
    found = questions(comparison, selection)
    part, layer = nth(parts_in_order(comparison.trace, are_put_in(comparison)), point.of("item"))
    return tuple(logit_part(*question, part, layer) for question in found)


def inspect_next_token(comparison: Comparison, selection: Selection, point: Point) -> Derivation | None:
    """A probability in B (the first bars) or in A; None of a token that B's model has not."""
    mine, theirs = probabilities(comparison, selection.query)
    shown = likeliest(mine, theirs)
    if point.row >= len(shown):
        raise NoSuchPoint(_("there is no bar {bar}", bar=point.row))
    token_id, source = int(shown[point.row]), Source("explorer/analysis/next_token.py", "plain=sampling_distribution(")
    if point.of("curve") == 1:
        return probability(comparison.trace, selection.query, token_id, float(mine[token_id]), source)
    other, there = comparison.other, comparison.alignment.nearest(selection.query)
    if np.isnan(theirs[token_id]):
        return None
    value, text = float(theirs[token_id]), comparison.trace.vocabulary[token_id]
    same = other.vocabulary == comparison.trace.vocabulary
    return probability(other, there, token_id if same else list(other.vocabulary).index(text), value, source)
