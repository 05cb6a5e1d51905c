"""KV cache: what a step finds stored, and what it computes."""

from functools import reduce

import numpy as np

from explorer.analysis.kv_cache import cached_lengths, cached_name, whole_lengths
from explorer.explain.analysed.kv_cache import computed, length, megabytes
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point
from explorer.language import N_, _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.checks import Mark, given, worked_out
from explorer.views.kv_cache.formula import formula
from explorer.views.kv_cache.savings import size, work
from explorer.views.style import SELECTED, figure, positions, token_axis
from explorer.views.view import Panel, View
from model.config import ModelConfig


def so_far(lengths: np.ndarray, query: int) -> np.ndarray:
    """Lengths (N, T) without those of later positions, which are not computed yet."""
    known = lengths.astype(float)
    known[:, query + 1 :] = np.nan
    return known


def heatmap(trace: Trace, lengths: np.ndarray, rows: list[str], hover: str, query: int, alt: str) -> go.Figure:
    """Lengths (N, T) up to the query, the step's own column framed; `hover` is told of each."""
    fig = figure(
        go.Heatmap(
            x=positions(trace.tokens),
            y=rows,
            z=so_far(lengths, query),
            zmin=0,
            zmax=lengths.max(),
            autocolorscale=True,
            hovertemplate=hover,
            hoverongaps=False,
            colorbar={"title": {"text": _("length ‖x‖₂"), "side": "right"}},
        ),
        alt=alt,
        xaxis=token_axis(trace.tokens, _("position: stored, now (framed), not yet")),
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
    )
    fig.add_vrect(query - 0.5, query + 0.5, line={"color": SELECTED, "width": 1.5})
    return fig


def cells(trace: Trace, query: int) -> go.Figure:
    """Every layer's keys by position: what is stored when the query's step begins, and what that adds."""
    layers, rest = trace.config.num_layers, len(trace) - 1 - query
    fig = heatmap(
        trace,
        whole_lengths(trace, "k"),
        [_("layer {layer}", layer=layer) for layer in range(layers)],
        _("%{y}, position %{x}<br>length of its keys %{z:.4g}<extra></extra>"),
        query,
        _(
            "The cache at the step of {token}: in each of {layers} layers keys and values of {position} positions are "
            "stored, those of position {position} are computed now, {rest} not yet.",
            token=quoted(trace.tokens[query]),
            layers=layers,
            position=query,
            rest=rest,
        ),
    )
    room = len(trace) / 6
    for text, middle, fits in (
        (_("stored"), (query - 1) / 2, query > room),
        (_("now"), query, True),
        (_("not yet"), query + (rest + 1) / 2, rest > room),
    ):
        if fits:
            fig.add_annotation(text=text, x=middle, y=1, yref="paper", yanchor="bottom", showarrow=False)
    return fig


def heads(trace: Trace, layer: int, part: str, query: int) -> go.Figure:
    """A layer's stored keys or values by kv head."""
    lengths = cached_lengths(trace, layer, part)  # (G, T)
    return heatmap(
        trace,
        lengths,
        [_("kv head {group}", group=group) for group in range(len(lengths))],
        look_up(HOVER[part]),
        query,
        look_up(
            ALT[part],
            layer=layer,
            position=query,
            groups=len(lengths),
            token=quoted(trace.tokens[query]),
            lengths=reduce(both, map(number, lengths[:4, query])),
        ),
    )


def both(first: str, last: str) -> str:
    return _("{first} and {last}", first=first, last=last)


HOVER = {
    "k": N_("%{y}, position %{x}<br>length of the key %{z:.4g}<extra></extra>"),
    "v": N_("%{y}, position %{x}<br>length of the value %{z:.4g}<extra></extra>"),
}
ALT = {
    "k": N_(
        "Lengths of the keys that layer {layer} has stored by position {position}, of {groups} kv heads: at {token} "
        "{lengths}."
    ),
    "v": N_(
        "Lengths of the values that layer {layer} has stored by position {position}, of {groups} kv heads: at {token} "
        "{lengths}."
    ),
}
TITLES = {
    "k": N_("The chosen layer's keys as they are stored, by kv head"),
    "v": N_("The chosen layer's values as they are stored, by kv head"),
}


def otherwise(config: ModelConfig) -> str:
    return _("This model's keys and values were not captured.")


def mark_of(part: str):
    def mark(trace: Trace, selection: Selection) -> Mark:
        return worked_out(cached_name(trace, selection.layer, part))(trace, selection)

    return mark


def mark_of_all(trace: Trace, selection: Selection) -> Mark:
    return worked_out(cached_name(trace, 0, "k").replace("blocks.0", "blocks.*"))(trace, selection)


def panel_of_heads(part: str) -> Panel:
    return Panel(
        name={"k": "keys", "v": "values"}[part],
        title=TITLES[part],
        draw=lambda trace, s: heads(trace, s.layer, part, s.query),
        selects={"x": "query"},
        mark=mark_of(part),
        inspect=lambda trace, s, point: length(trace, part, s.layer, point.row, point.column, s.query),
        height=300,
        width="half",
    )


def inspect_size(trace: Trace, selection: Selection, point: Point) -> Derivation:
    stored = point.of("item") + 1
    if stored > trace.config.context_length:
        raise NoSuchPoint(_("the context has no {stored} positions", stored=stored))
    return megabytes(trace, stored, shared=point.of("curve") == 0)


VIEW = View(
    name="kv_cache",
    title=N_("KV cache"),
    words=N_(
        "To write a token the model needs the keys and values of all tokens before it. They never change, so each is "
        "computed once and kept: this memory is the KV cache. Choose a token to see what its step finds stored, what "
        "it computes and adds, and what that saves; a prompt is read in one go, as if its steps were one."
    ),
    formula=formula,
    needs=("blocks.*.attn.k", "blocks.*.attn.v"),
    otherwise=otherwise,
    controls=("layer", "query"),
    panels=(
        Panel(
            name="cells",
            title=N_("The cache at the chosen token's step: length of each layer's keys, position by position"),
            draw=lambda trace, s: cells(trace, s.query),
            selects={"x": "query", "y": "layer"},
            mark=mark_of_all,
            inspect=lambda trace, s, point: length(trace, "k", point.row, None, point.column, s.query),
            height=300,
        ),
        panel_of_heads("k"),
        panel_of_heads("v"),
        Panel(
            name="size",
            title=N_("How large the cache grows"),
            draw=lambda trace, s: size(trace, s.query),
            inspect=inspect_size,
            mark=given(N_("nothing captured is shown: counted from the model's shape, 4 bytes a number")),
            height=280,
            width="half",
        ),
        Panel(
            name="work",
            title=N_("What is computed with the cache, and what would be without"),
            draw=lambda trace, s: work(trace, s.query),
            inspect=lambda trace, s, point: computed(trace, point.of("item") + 1, cached=point.of("curve") == 0),
            mark=given(N_("nothing captured is shown: counted, n positions against n (n + 1) / 2")),
            height=280,
            width="half",
        ),
    ),
)
