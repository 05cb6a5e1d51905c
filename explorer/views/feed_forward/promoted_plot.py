"""The tokens that a neuron speaks for and against."""

import numpy as np

from explorer.analysis.feed_forward import neuron, pushed
from explorer.analysis.largest import largest_first
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.style import FEED_FORWARD, MONO, RESIDUAL, figure, label

MOST_TOKENS = 10  # each way


def most_pushed(push: np.ndarray) -> np.ndarray:
    """Of what a neuron adds to all logits (V,), the ids of the tokens that it raises and lowers most."""
    each = min(MOST_TOKENS, len(push) // 2)
    lowered = len(push) - 1 - largest_first(-push[::-1], each)  # of equal ones the last, as sorting all would have them
    return np.concatenate([largest_first(push, each), lowered[::-1]])


def promoted(trace: Trace, layer: int, chosen: int, query: int) -> go.Figure:
    """The tokens whose logits the neuron's output direction raises and lowers most."""
    push = pushed(trace, layer, chosen, query)  # (V,)
    hidden = neuron(trace, layer, chosen, query).hidden
    shown = most_pushed(push)
    each = len(shown) // 2
    names = [trace.vocabulary[token_id] for token_id in shown]
    title = _("logit for each 1 of the hidden value,<br>norm gains folded in; here {hidden}", hidden=number(hidden))
    if hidden < 0:
        title = _("{title},<br>below 0, so that all turns round", title=title)
    fig = figure(
        go.Bar(
            x=push[shown],
            y=np.arange(len(shown)),
            orientation="h",
            text=[
                _("{token}<br>adds {value} here", token=label(name), value=number(hidden * by))
                for name, by in zip(names, push[shown], strict=True)
            ],
            textposition="none",
            marker={"color": FEED_FORWARD},
            hovertemplate=_("%{text}<br>%{x:.4g} for each 1 of the hidden value<extra></extra>"),
        ),
        alt=_(
            "Neuron {neuron} of layer {layer} promotes {raised} most and suppresses {lowered}; hidden value here "
            "{value}.",
            neuron=chosen,
            layer=layer,
            raised=", ".join(quoted(name) for name in names[:3]),
            lowered=", ".join(quoted(name) for name in names[:-4:-1]),
            value=number(hidden),
        ),
        xaxis={"title": {"text": title}},
        yaxis={
            "tickvals": list(range(len(shown))),
            "ticktext": [label(name) for name in names],
            "tickfont": {"family": MONO, "size": 11},
            "range": [len(shown) - 0.4, -0.6],
            "showgrid": False,
            "zeroline": False,
        },
        bargap=0.25,
    )
    fig.add_hline(each - 0.5, line={"color": RESIDUAL, "width": 1, "dash": "dot"})
    return fig
