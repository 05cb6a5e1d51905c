"""What comes next: how the guess comes about from layer to layer. The simple page's third step."""

import numpy as np

from explorer.analysis.lens import readings
from explorer.analysis.next_token import next_token
from explorer.architecture.stream import depth_places
from explorer.explain.analysed.lens import lens_cell
from explorer.explain.derivation import Derivation
from explorer.explain.notation import quoted
from explorer.explain.point import Point, nth
from explorer.language import N_, _, ngettext
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.lens_mark import mark_of_lens
from explorer.views.style import MONO, RESIDUAL, SELECTED, figure, label
from explorer.views.token_bars import percent
from explorer.views.view import Panel, View

MOST_NAMED = 3  # guesses


def early_guesses(trace: Trace, query: int) -> tuple[np.ndarray, np.ndarray]:
    """What would be the likeliest next token before any layer, and after each: ids and probabilities, (L + 1,) each."""
    read = readings(trace, range(query, query + 1))
    each = len(depth_places(trace.config))  # the lens may also read between a layer's two parts
    return read.top[::each, 0, 0], read.probabilities[::each, 0, 0]


def layers(trace: Trace) -> list[str]:
    return [_("no layer"), *(_("layer {layer}", layer=layer) for layer in range(trace.config.num_layers))]


def picture(trace: Trace, query: int) -> go.Figure:
    ids, shares = early_guesses(trace, query)
    tokens = [label(trace.vocabulary[token_id]) for token_id in ids]
    names = layers(trace)
    return figure(
        go.Bar(
            x=names,
            y=shares,
            marker={"color": [SELECTED if token_id == ids[-1] else RESIDUAL for token_id in ids]},
            text=tokens,
            textposition="outside",
            textfont={"family": MONO, "size": 13},
            cliponaxis=False,
            hovertemplate="%{x}<br>%{text} %{y:.2%}<extra></extra>",
        ),
        alt=_(
            "The likeliest next token if the model stopped early: before any layer {first}, after all {last}.",
            first=quoted(trace.vocabulary[ids[0]]),
            last=quoted(trace.vocabulary[ids[-1]]),
        ),
        xaxis={"type": "category", "title": {"text": _("if it stopped after")}, "showgrid": False},
        yaxis={"range": [0, 1.08], "tickformat": ".0%", "title": {"text": _("how sure it would be")}},
        bargap=0.25,
    )


def formula(trace: Trace, selection: Selection) -> str:
    query = selection.query
    prediction = next_token(trace, query)
    shares = prediction.plain
    guesses = ", ".join(
        f"{quoted(trace.vocabulary[token_id])} {percent(float(shares[token_id]))}"
        for token_id in prediction.top(MOST_NAMED)
    )
    told = _(
        "After {token} the model’s own probabilities, before temperature and top-k, are {guesses}.",
        token=quoted(trace.tokens[query]),
        guesses=guesses,
    )
    return f"{told}\n{when_settled(trace, query)}"


def when_settled(trace: Trace, query: int) -> str:
    """From which layer on the last guess is the likeliest."""
    ids, _shares = early_guesses(trace, query)
    last = quoted(trace.vocabulary[ids[-1]])
    others = np.flatnonzero(ids != ids[-1])
    settled = int(others[-1]) + 1 if len(others) else 0
    if settled == 0:
        return _("{token} is likeliest from the beginning, before any layer has worked.", token=last)
    rest = trace.config.num_layers - settled
    if (ids[:settled] == ids[-1]).any():  # and was not in between
        first = _("{token} becomes the likeliest again in layer {layer}", token=last, layer=settled - 1)
    else:
        first = _("{token} becomes the likeliest in layer {layer}", token=last, layer=settled - 1)
    if rest == 0:
        return _("{first}, the last one.", first=first)
    return ngettext(
        "{first}, and stays so in {count} more layer.",
        "{first}, and stays so in {count} more layers.",
        rest,
        first=first,
    )


def inspect(trace: Trace, selection: Selection, point: Point) -> Derivation:
    depth = len(depth_places(trace.config)) * nth(range(trace.config.num_layers + 1), point.of("item"))
    return lens_cell(trace, depth, selection.query, 0, "probability")


VIEW = View(
    name="guesses",
    title=N_("3 · Next word"),
    words=N_(
        "Layer after layer adds what it found to the last token's list of numbers; at the end that list becomes a "
        "probability for every token the model knows. Here is what it would guess if it stopped early: the first bar "
        "is what that list says before any layer has worked."
    ),
    formula=formula,
    needs=("blocks.*.resid_post", "logits", "lm_head.weight"),
    otherwise=lambda config: _("Too little was captured of this model to follow its prediction."),
    panels=(
        Panel(
            name="layers",
            title=N_("How does the guess come about?"),
            draw=lambda trace, s: picture(trace, s.query),
            mark=mark_of_lens,
            inspect=inspect,
            height=320,
        ),
    ),
    in_full=lambda trace, s: (_("All depths, and what each part adds"), {"view": "prediction"}),
)
