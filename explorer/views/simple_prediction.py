"""Prediction step of the story: the guess from layer to layer."""

import numpy as np

from explorer.analysis.logit_lens import lens_cell, lens_summaries
from explorer.analysis.next_token import next_token_distribution
from explorer.architecture.residual_stream import block_lens_points
from explorer.explain.clicked_point import ClickedPoint, get_item
from explorer.explain.derivation import Derivation
from explorer.explain.notation import quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext
from explorer.views import graph_objects as go
from explorer.views.plots import format_percent
from explorer.views.style import MONO, RESIDUAL, SELECTED, figure, label
from explorer.views.verification import verify_lens
from explorer.views.view import Panel, View

MAX_NAMED = 3  # guesses


def top_token_by_layer(trace: Trace, query: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the most probable next token before the first layer and after each layer.

    Ids and probabilities, (L + 1,) each, by the logit lens.
    """
    summaries = lens_summaries(trace, range(query, query + 1))
    depths_per_layer = len(block_lens_points(trace.config))  # the lens may also read between a layer's two parts
    return summaries.top[::depths_per_layer, 0, 0], summaries.probabilities[::depths_per_layer, 0, 0]


def layer_labels(trace: Trace) -> list[str]:
    """Return the labels of the depths: no layer, then each layer."""
    return [_("no layer"), *(_("layer {layer}", layer=layer) for layer in range(trace.config.num_layers))]


def draw(trace: Trace, query: int) -> go.Figure:
    """Draw the likeliest next token after each layer."""
    ids, shares = top_token_by_layer(trace, query)
    tokens = [label(trace.vocabulary[token_id]) for token_id in ids]
    names = layer_labels(trace)
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
            first=quote_token(trace.vocabulary[ids[0]]),
            last=quote_token(trace.vocabulary[ids[-1]]),
        ),
        xaxis={"type": "category", "title": {"text": _("if it stopped after")}, "showgrid": False},
        yaxis={"range": [0, 1.08], "tickformat": ".0%", "title": {"text": _("how sure it would be")}},
        bargap=0.25,
    )


def next_token_sentence(trace: Trace, selection: Selection) -> str:
    """Return a sentence on the likeliest next tokens."""
    query = selection.query
    prediction = next_token_distribution(trace, query)
    shares = prediction.plain
    guesses = ", ".join(
        f"{quote_token(trace.vocabulary[token_id])} {format_percent(float(shares[token_id]))}"
        for token_id in prediction.top(MAX_NAMED)
    )
    guesses_text = _(
        "After {token} the model’s own probabilities, before temperature and top-k, are {guesses}.",
        token=quote_token(trace.tokens[query]),
        guesses=guesses,
    )
    return f"{guesses_text}\n{settled_layer_text(trace, query)}"


def settled_layer_text(trace: Trace, query: int) -> str:
    """Describe from which layer on the final guess is the most probable token."""
    ids, _shares = top_token_by_layer(trace, query)
    last = quote_token(trace.vocabulary[ids[-1]])
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


def inspect(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked probability after a layer."""
    depth = len(block_lens_points(trace.config)) * get_item(
        range(trace.config.num_layers + 1), point.coordinate("item")
    )
    return lens_cell(trace, depth, selection.query, 0, "probability")


VIEW = View(
    name="guesses",
    title=N_("3 · What each step adds"),
    group="story",
    order=30,
    description=N_(
        "Layer after layer adds what it found. Here is the guess after each; the first bar is before any layer has "
        "worked."
    ),
    formula=next_token_sentence,
    required_taps=("blocks.*.resid_post", "logits", "lm_head.weight"),
    unavailable_message=lambda config: _("Too little was captured of this model to follow its prediction."),
    panels=(
        Panel(
            name="layers",
            title=N_("How does the guess come about?"),
            draw=lambda trace, s: draw(trace, s.query),
            verify=verify_lens,
            inspect=inspect,
            height=420,
        ),
    ),
    numbers_view_link=lambda trace, s: (_("All depths, and what each part adds"), {"view": "prediction"}),
)
