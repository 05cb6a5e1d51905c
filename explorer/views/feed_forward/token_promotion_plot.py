"""Figure of the tokens whose logits a neuron raises and lowers most."""

import numpy as np

from explorer.analysis.feed_forward import neuron_logit_effects, recompute_neuron
from explorer.analysis.next_token import top_indices
from explorer.explain.notation import format_number, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views import graph_objects as go
from explorer.views.style import FEED_FORWARD, MONO, RESIDUAL, figure, label

MAX_TOKENS_PER_SIDE = 10  # each way


def most_affected_tokens(logit_effects: np.ndarray) -> np.ndarray:
    """Return the ids of the tokens whose logits a neuron's effects (V,) raise and lower most, in descending order."""
    count = min(MAX_TOKENS_PER_SIDE, len(logit_effects) // 2)
    lowered = (
        len(logit_effects) - 1 - top_indices(-logit_effects[::-1], count)
    )  # ties: the last index, as in a full sort
    return np.concatenate([top_indices(logit_effects, count), lowered[::-1]])


def promoted_tokens(trace: Trace, layer: int, chosen_neuron: int, query: int) -> go.Figure:
    """Draw the tokens whose logits the neuron's output direction raises and lowers most."""
    logit_effects = neuron_logit_effects(trace, layer, chosen_neuron, query)  # (V,)
    hidden = recompute_neuron(trace, layer, chosen_neuron, query).hidden
    token_ids = most_affected_tokens(logit_effects)
    num_raised = len(token_ids) // 2
    names = [trace.vocabulary[token_id] for token_id in token_ids]
    title = _(
        "logit for each 1 of the hidden value,<br>norm gains folded in; here {hidden}", hidden=format_number(hidden)
    )
    if hidden < 0:
        title = _("{title},<br>below 0, so that all turns round", title=title)
    fig = figure(
        go.Bar(
            x=logit_effects[token_ids],
            y=np.arange(len(token_ids)),
            orientation="h",
            text=[
                _("{token}<br>adds {value} here", token=label(name), value=format_number(hidden * effect))
                for name, effect in zip(names, logit_effects[token_ids], strict=True)
            ],
            textposition="none",
            marker={"color": FEED_FORWARD},
            hovertemplate=_("%{text}<br>%{x:.4g} for each 1 of the hidden value<extra></extra>"),
        ),
        alt=_(
            "Neuron {neuron} of layer {layer} promotes {raised} most and suppresses {lowered}; hidden value here "
            "{value}.",
            neuron=chosen_neuron,
            layer=layer,
            raised=", ".join(quote_token(name) for name in names[:3]),
            lowered=", ".join(quote_token(name) for name in names[:-4:-1]),
            value=format_number(hidden),
        ),
        xaxis={"title": {"text": title}},
        yaxis={
            "tickvals": list(range(len(token_ids))),
            "ticktext": [label(name) for name in names],
            "tickfont": {"family": MONO, "size": 11},
            "range": [len(token_ids) - 0.4, -0.6],
            "showgrid": False,
            "zeroline": False,
        },
        bargap=0.25,
    )
    fig.add_hline(num_raised - 0.5, line={"color": RESIDUAL, "width": 1, "dash": "dot"})
    return fig
