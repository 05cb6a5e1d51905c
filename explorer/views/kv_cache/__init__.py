"""KV cache: what a step finds stored, and what it computes."""

import numpy as np
import plotly.graph_objects as go

from explorer.analysis.kv_cache import cached_lengths, cached_name, step_flops, whole_lengths
from explorer.explain.analysed.kv_cache import NAMES, computed, length, megabytes
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.checks import Mark, given, worked_out
from explorer.views.kv_cache.savings import size, work
from explorer.views.style import SELECTED, figure, positions, token_axis
from explorer.views.view import Panel, View
from model.config import ModelConfig
from model.counting import kv_cache_bytes_per_token


def so_far(lengths: np.ndarray, query: int) -> np.ndarray:
    """Lengths (N, T) without those of later positions, which are not computed yet."""
    known = lengths.astype(float)
    known[:, query + 1 :] = np.nan
    return known


def heatmap(trace: Trace, lengths: np.ndarray, rows: list[str], what: str, query: int, alt: str) -> go.Figure:
    """Lengths (N, T) up to the query, the step's own column framed."""
    fig = figure(
        go.Heatmap(
            x=positions(trace.tokens),
            y=rows,
            z=so_far(lengths, query),
            zmin=0,
            zmax=lengths.max(),
            autocolorscale=True,
            hovertemplate=f"%{{y}}, position %{{x}}<br>length of {what} %{{z:.4g}}<extra></extra>",
            hoverongaps=False,
            colorbar={"title": {"text": "length ‖x‖₂", "side": "right"}},
        ),
        alt=alt,
        xaxis=token_axis(trace.tokens, "position: stored, now (framed), not yet"),
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
        [f"layer {layer}" for layer in range(layers)],
        "its keys",
        query,
        f"The cache at the step of {quoted(trace.tokens[query])}: in each of {layers} layers keys and values of "
        f"{query} positions are stored, those of position {query} are computed now, {rest} not yet.",
    )
    parts = [("stored", (query - 1) / 2, query), ("now", query, 1), ("not yet", query + (rest + 1) / 2, rest)]
    for text, middle, columns in parts:
        if text == "now" or columns > len(trace) / 6:  # where there is room
            fig.add_annotation(text=text, x=middle, y=1, yref="paper", yanchor="bottom", showarrow=False)
    return fig


def heads(trace: Trace, layer: int, part: str, query: int) -> go.Figure:
    """A layer's stored keys or values by kv head."""
    lengths = cached_lengths(trace, layer, part)  # (G, T)
    return heatmap(
        trace,
        lengths,
        [f"kv head {group}" for group in range(len(lengths))],
        f"the {NAMES[part]}",
        query,
        f"Lengths of the {NAMES[part]}s that layer {layer} has stored by position {query}, of {len(lengths)} kv heads: "
        f"at {quoted(trace.tokens[query])} {' and '.join(map(number, lengths[:4, query]))}.",
    )


def formula(trace: Trace, selection: Selection) -> str:
    config, query = trace.config, selection.query
    stored, each = query + 1, kv_cache_bytes_per_token(config)
    layers, groups, width = config.num_layers, config.kv_heads, config.d_head
    with_cache, without = step_flops(config, query)
    lines = [
        f"the step of {quoted(trace.tokens[query])} ({query}): {query} positions are stored, 1 is computed; without a "
        f"cache all {stored} would be: {number(without / with_cache)} times the floating-point operations "
        f"({number(without / 1e6)} instead of {number(with_cache / 1e6)} million)",
        "counted are products of matrices, of each position’s scores those with itself and the positions before it: "
        "scores that the causal mask hides do not count, though a program may work them out and throw them away",
        f"bytes a position = 2 (key, value) · layers · kv heads · d · 4 = 2·{layers}·{groups}·{width}·4 = {each:,}",
        f"in the cache after it: {stored} · {each:,} = {stored * each:,} bytes; at the end of the context: "
        f"{config.context_length:,} · {each:,} = {config.context_length * each:,}",
        f"steps 1 to {stored}: {stored:,} positions computed instead of n (n + 1) / 2 = "
        f"{stored * (stored + 1) // 2:,}, (n + 1) / 2 = {number((stored + 1) / 2)} times as many",
    ]
    if groups < config.num_heads:
        lines.append(
            f"{config.num_heads} query heads share {groups} kv heads: it takes "
            f"{config.num_heads // groups} times less than {config.num_heads * each // groups:,} bytes a position"
        )
    return "\n".join(lines)


def otherwise(config: ModelConfig) -> str:
    return "This model's keys and values were not captured."


def mark_of(part: str):
    def mark(trace: Trace, selection: Selection) -> Mark:
        return worked_out(cached_name(trace, selection.layer, part))(trace, selection)

    return mark


def mark_of_all(trace: Trace, selection: Selection) -> Mark:
    return worked_out(cached_name(trace, 0, "k").replace("blocks.0", "blocks.*"))(trace, selection)


def panel_of_heads(part: str) -> Panel:
    return Panel(
        name=f"{NAMES[part]}s",
        title=f"The chosen layer's {NAMES[part]}s as they are stored, by kv head",
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
        raise NoSuchPoint(f"the context has no {stored} positions")
    return megabytes(trace, stored, shared=point.of("curve") == 0)


VIEW = View(
    name="kv_cache",
    title="KV cache",
    words=(
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
            title="The cache at the chosen token's step: length of each layer's keys, position by position",
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
            title="How large the cache grows",
            draw=lambda trace, s: size(trace, s.query),
            inspect=inspect_size,
            mark=given("nothing captured is shown: counted from the model's shape, 4 bytes a number"),
            height=280,
            width="half",
        ),
        Panel(
            name="work",
            title="What is computed with the cache, and what would be without",
            draw=lambda trace, s: work(trace, s.query),
            inspect=lambda trace, s, point: computed(trace, point.of("item") + 1, cached=point.of("curve") == 0),
            mark=given("nothing captured is shown: counted, n positions against n (n + 1) / 2"),
            height=280,
            width="half",
        ),
    ),
)
