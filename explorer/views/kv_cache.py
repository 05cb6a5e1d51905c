"""KV cache view: the stored keys and values, and what each step computes."""

import numpy as np

from explorer.analysis.attention import (
    cache_megabytes,
    cached_norms,
    cached_norms_all_heads,
    cached_vector_norm,
    derive_positions_computed,
    megabytes_stored,
    positions_computed,
    step_flops,
)
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_number, format_six_digits, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate
from explorer.views import graph_objects as go
from explorer.views.style import ATTENTION, RESIDUAL, column_band, column_line, figure, position_labels, token_axis
from explorer.views.verification import make_unverified, verify_derived
from explorer.views.view import Panel, View
from model.config import ModelConfig, kv_cache_bytes_per_token


def describe_cache_size(trace: Trace, selection: Selection) -> str:
    """Return the size of the cache and the work that it saves, in numbers."""
    config, query = trace.config, selection.query
    stored, position_bytes = query + 1, kv_cache_bytes_per_token(config)
    layers, groups, width = config.num_layers, config.kv_heads, config.d_head
    with_cache, without = step_flops(config, query)
    lines = [
        _(
            "the step of {token} ({position}): {position} positions are stored, 1 is computed; without a cache all "
            "{stored} would be: {times} times the floating-point operations ({without} instead of {with_cache} "
            "million)",
            token=quote_token(trace.tokens[query]),
            position=query,
            stored=stored,
            times=format_six_digits(without / with_cache),
            without=format_six_digits(without / 1e6),
            with_cache=format_six_digits(with_cache / 1e6),
        ),
        _(
            "counted are matrix products and the scores that the causal mask leaves visible; a program may compute "
            "hidden scores, too, and discard them"
        ),
        _(
            "bytes a position = 2 (key, value) · layers · kv heads · d · 4 = 2·{layers}·{groups}·{width}·4 = {each:,}",
            layers=layers,
            groups=groups,
            width=width,
            each=position_bytes,
        ),
        _(
            "in the cache after it: {stored} · {each:,} = {now:,} bytes; at the end of the context: {context:,} · "
            "{each:,} = {most:,}",
            stored=stored,
            each=position_bytes,
            now=stored * position_bytes,
            context=config.context_length,
            most=config.context_length * position_bytes,
        ),
        _(
            "steps 1 to {stored}: {stored:,} positions computed instead of n (n + 1) / 2 = {instead:,}, (n + 1) / 2 = "
            "{times} times as many",
            stored=stored,
            instead=stored * (stored + 1) // 2,
            times=format_six_digits((stored + 1) / 2),
        ),
    ]
    if groups < config.num_heads:
        shared = _(
            "{heads} query heads share {groups} kv heads: it takes {times} times less than {bytes:,} bytes a position",
            heads=config.num_heads,
            groups=groups,
            times=config.num_heads // groups,
            bytes=config.num_heads * position_bytes // groups,
        )
        lines.append(shared)
    return "\n".join(lines)


def cache_size_plot(trace: Trace, query: int) -> go.Figure:
    """Draw the cache's bytes by number of positions; with shared kv heads also the bytes without sharing."""
    config = trace.config
    filled = np.arange(1, config.context_length + 1)
    position_bytes = kv_cache_bytes_per_token(config)
    lines = [(_("as it is"), True, ATTENTION, "solid")]
    if config.kv_heads < config.num_heads:
        lines.append((_("if no heads shared"), False, RESIDUAL, "dot"))
    return figure(
        [
            go.Scatter(
                x=filled,
                y=megabytes_stored(config, filled, shared),
                name=name,
                mode="lines",
                line={"color": color, "dash": dash},
                hovertemplate=_("%{x} positions<br>%{y:.4g} MB<extra></extra>"),
            )
            for name, shared, color, dash in lines
        ],
        alt=_(
            "The cache grows by {each:,} bytes a position: {now:,} bytes after this step, {most:,} at the end of the "
            "context of {context}.",
            each=position_bytes,
            now=(query + 1) * position_bytes,
            most=config.context_length * position_bytes,
            context=config.context_length,
        ),
        xaxis={"title": {"text": _("positions stored")}, "showgrid": False},
        yaxis={"title": {"text": _("MB in the cache")}, "rangemode": "tozero"},
        showlegend=len(lines) > 1,
        shapes=[column_line(query + 1, width=1.5)],
    )


def positions_computed_lines(trace: Trace, query: int) -> go.Figure:
    """Draw the number of positions computed up to each step, with a cache and without."""
    cached, uncached = positions_computed(len(trace))
    return figure(
        [
            go.Scatter(
                x=cached,
                y=values,
                name=name,
                mode="lines+markers" if len(trace) == 1 else "lines",
                line={"color": color},
                hovertemplate=_("{cache}: %{{y:,}} positions computed in %{{x}} steps<extra></extra>", cache=name),
            )
            for name, values, color in ((_("with the cache"), cached, ATTENTION), (_("without"), uncached, RESIDUAL))
        ],
        alt=_(
            "By step {step}, {cached:,} positions were computed with the cache; without it {uncached:,} would have "
            "been.",
            step=query + 1,
            cached=cached[query],
            uncached=uncached[query],
        ),
        xaxis={"title": {"text": _("step (a token each)")}, "showgrid": False},
        yaxis={"title": {"text": _("positions computed so far")}, "rangemode": "tozero"},
        shapes=[column_line(query + 1, width=1.5)],
    )


def norm_heatmap(trace: Trace, norms: np.ndarray, rows: list[str], hover: str, query: int, alt: str) -> go.Figure:
    """Draw norms (N, T) up to the query, the query's column framed; `hover` is the hover template."""
    return figure(
        go.Heatmap(
            x=position_labels(trace.tokens),
            y=rows,
            z=np.where(np.arange(len(trace)) <= query, norms, np.nan),  # later ones are not computed yet
            zmin=0,
            zmax=norms.max(),
            hovertemplate=hover,
            hoverongaps=False,
            colorbar={"title": {"text": _("length ‖x‖₂"), "side": "right"}},
        ),
        alt=alt,
        xaxis=token_axis(trace.tokens, _("position: stored, now (framed), not yet")),
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
        shapes=[column_band(query, width=1.5)],
    )


def key_norm_map(trace: Trace, query: int) -> go.Figure:
    """Draw the norms of every layer's keys by position: stored before the query's step, computed in it, or not yet."""
    layers, rest = trace.config.num_layers, len(trace) - 1 - query
    fig = norm_heatmap(
        trace,
        cached_norms_all_heads(trace, "k"),
        [_("layer {layer}", layer=layer) for layer in range(layers)],
        _("%{y}, position %{x}<br>length of its keys %{z:.4g}<extra></extra>"),
        query,
        _(
            "The cache at the step of {token}: in each of {layers} layers keys and values of {position} positions are "
            "stored, those of position {position} are computed now, {rest} not yet.",
            token=quote_token(trace.tokens[query]),
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


def kv_head_norm_map(trace: Trace, layer: int, kind: str, query: int) -> go.Figure:
    """Draw the norms of a layer's cached keys or values by kv head."""
    norms = cached_norms(trace, layer, kind)  # (G, T)
    return norm_heatmap(
        trace,
        norms,
        [_("kv head {group}", group=group) for group in range(len(norms))],
        translate(TEXTS[kind]["hover"]),
        query,
        translate(
            TEXTS[kind]["alt"],
            layer=layer,
            position=query,
            groups=len(norms),
            token=quote_token(trace.tokens[query]),
            lengths=", ".join(map(format_number, norms[:4, query])),
        ),
    )


TEXTS = {
    "k": {
        "title": N_("The chosen layer’s keys, by kv head"),
        "heading": N_("Layer {layer}: its keys as stored, by kv head"),
        "hover": N_("%{y}, position %{x}<br>length of the key %{z:.4g}<extra></extra>"),
        "alt": N_(
            "Lengths of the keys that layer {layer} has stored by position {position}, of {groups} kv heads: at "
            "{token} {lengths}."
        ),
    },
    "v": {
        "title": N_("The chosen layer’s values, by kv head"),
        "heading": N_("Layer {layer}: its values as stored, by kv head"),
        "hover": N_("%{y}, position %{x}<br>length of the value %{z:.4g}<extra></extra>"),
        "alt": N_(
            "Lengths of the values that layer {layer} has stored by position {position}, of {groups} kv heads: at "
            "{token} {lengths}."
        ),
    },
}


def kv_cache_sentence(trace: Trace, selection: Selection) -> str:
    """Return how many positions the query's step finds stored, and the size of the cache after it."""
    stored = ngettext(
        "At {token} each layer finds the keys and values of {count} token stored and adds its own: the cache takes "
        "{size} MB.",
        "At {token} each layer finds the keys and values of {count} tokens stored and adds its own: the cache takes "
        "{size} MB.",
        selection.query,
        token=quote_token(trace.tokens[selection.query]),
        size=format_number(megabytes_stored(trace.config, selection.query + 1)),
    )
    return f"{stored} {translate(NEXT_STEP)}"


NEXT_STEP = N_("Choose a token.")


def cached_value_name(config: ModelConfig, kind: str) -> str:
    """Return the name in a block of the cached keys ("k"), after rotation if the model uses RoPE, or values ("v")."""
    return f"attn.{kind}" + "_rot" * (kind == "k" and config.position == "rope")


def kv_head_norm_panel(kind: str) -> Panel:
    """Return the panel of the cached keys ("k") or values ("v")."""
    return Panel(
        name={"k": "keys", "v": "values"}[kind],
        title=TEXTS[kind]["title"],
        heading=TEXTS[kind]["heading"],
        draw=lambda trace, s: kv_head_norm_map(trace, s.layer, kind, s.query),
        click_selects={"x": "query"},
        verify=verify_derived(lambda config: [f"blocks.{{layer}}.{cached_value_name(config, kind)}"]),
        inspect=lambda trace, s, point: cached_vector_norm(trace, kind, s.layer, point.row, point.column, s.query),
        height=300,
        width="half",
    )


def inspect_cache_size(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked size of the cache in megabytes."""
    stored = 1 + get_item(range(trace.config.context_length), point.coordinate("item"))
    return cache_megabytes(trace, stored, shared=point.coordinate("curve") == 0)


VIEW = View(
    name="kv_cache",
    title=N_("KV cache"),
    group="further",
    order=134,
    description=N_(
        "Keys and values of earlier tokens never change, so each is computed once and kept. Choose a token: what its "
        "step finds stored."
    ),
    sentence=kv_cache_sentence,
    formula=describe_cache_size,
    required_taps=("blocks.*.attn.k", "blocks.*.attn.v"),
    unavailable_message=lambda config: _("This model’s keys and values were not captured."),
    controls=("layer", "query"),
    code=("model.layers.attention:KVCache.extend",),
    code_lines=("keys, values = single.narrow(",),
    panels=(
        Panel(
            name="cells",
            title=N_("The cache at the chosen token’s step: length of each layer’s keys, position by position"),
            heading=N_("The cache at {query}: the length of each key"),
            draw=lambda trace, s: key_norm_map(trace, s.query),
            click_selects={"x": "query", "y": "layer"},
            verify=verify_derived(lambda config: [f"blocks.*.{cached_value_name(config, 'k')}"]),
            inspect=lambda trace, s, point: cached_vector_norm(trace, "k", point.row, None, point.column, s.query),
            height=300,
        ),
        kv_head_norm_panel("k"),
        kv_head_norm_panel("v"),
        Panel(
            name="size",
            title=N_("How large the cache grows"),
            draw=lambda trace, s: cache_size_plot(trace, s.query),
            inspect=inspect_cache_size,
            verify=make_unverified(N_("nothing captured is shown: counted from the model’s shape, 4 bytes a number")),
            height=280,
            width="half",
        ),
        Panel(
            name="work",
            title=N_("What is computed, with the cache and without"),
            draw=lambda trace, s: positions_computed_lines(trace, s.query),
            inspect=lambda trace, s, point: derive_positions_computed(
                trace, point.coordinate("item") + 1, cached=point.coordinate("curve") == 0
            ),
            verify=make_unverified(N_("nothing captured is shown: counted, n positions against n (n + 1) / 2")),
            height=280,
            width="half",
        ),
    ),
)
