"""Figures of the components of a logit, and of the contribution of each input token."""

import textwrap
from collections.abc import Callable

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.token_contributions import (
    METHODS,
    TokenContributions,
    check_gradient_run,
    contribution_without_source,
    derive_contribution_without_source,
    source_contribution,
    source_totals,
    token_contribution,
    token_contributions,
)
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_contribution, format_number, format_six_digits, join_names, quote_token
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, extend, text, value
from explorer.views.labels import logit_label, target_and_contrast
from explorer.views.shared_plots import BAR_NUMBERS, colour_legend, component_bar_data
from explorer.views.style import (
    ATTENTION,
    EMBEDDING,
    RESIDUAL,
    cell_frame,
    column_band,
    figure,
    label,
    note_above,
    position_labels,
    token_axis,
)
from explorer.views.two_run_figures import subtract_figures
from explorer.views.verification import verify_derived


def component_bars(
    trace: Trace, query: int, token_id: int, contrast_id: int | None = None, layer: int = 0
) -> go.Figure:
    """Draw each component's contribution to a logit, or to a logit difference, after the query.

    The contributions add up to it.

    Args:
        layer: chosen; clicks on components outside layers keep it.
    """
    contributions = direct_logit_attribution(trace, query, token_id, contrast_id)
    bars = list(component_bar_data(trace, contributions))
    names, values, colours, descriptions, layers = zip(*bars, strict=True)
    largest_index = int(np.argmax(np.abs(values)))
    return PARTS_FIGURE.draw(
        bars=np.arange(len(bars)),
        values=values,
        colours=colours,
        hover=[
            f"{description}<br>{contribution_phrase(value, format_six_digits)}"
            for description, value in zip(descriptions, values, strict=True)
        ],
        layers=[layer if bar_layer is None else bar_layer for bar_layer in layers],
        names=names,
        written=[format_contribution(value) for value in values],
        colours_named=colour_legend(trace),
        count=len(bars),
        logit=logit_label(trace, token_id, contrast_id),
        token=quote_token(trace.tokens[query]),
        value=format_number(contributions.logit),
        part=descriptions[largest_index],
        adds=contribution_phrase(values[largest_index]),
        total=format_contribution(contributions.total).removeprefix("+"),
        largest=format_contribution(values[largest_index]),
        label=logit_label(trace, token_id, contrast_id, label),
    )


PARTS_FIGURE = FigureTemplate(
    alt=text(N_("{count} parts that add up to {logit} after {token}, {value}; the largest: {part}, {adds}.")),
    traces=[
        go.Bar(
            x=value("bars"),
            y=value("values"),
            marker={"color": value("colours")},
            text=value("written"),
            **BAR_NUMBERS,
            hovertext=value("hover"),
            customdata=value("layers"),
            hovertemplate="%{hovertext}<extra></extra>",
        )
    ],
    layout={
        "xaxis": {
            "title": {"text": text(N_("layer and part<br>norms frozen, with their gain; mean logit kept"))},
            "tickvals": value("bars"),
            "ticktext": value("names"),
            "showgrid": False,
        },
        "yaxis": {"title": {"text": text(N_("part of the logit"))}},
        "annotations": note_above(
            text(
                N_("{colours}<br>{count} parts sum to {total}, {logit}.<br>The largest: {part}, {largest}."),
                colours="colours_named",
                logit="label",
            )
        ),
        "margin": {"t": 76},  # of three lines
        "uniformtext": {"minsize": 9, "mode": "hide"},  # of many bars none has room for a number
    },
)


def subtract_component_bars(first: go.Figure, second: go.Figure, comparison: Comparison, title: str) -> go.Figure:
    """Return A − B of two figures of a logit's parts, with the difference of the whole logits.

    Raises:
        NoDifferenceError: see `subtract_figures`.
    """
    fig = subtract_figures(first, second, comparison, title)
    traces, layout = fig.traces_and_layout
    (legend, *others), total = layout["annotations"], sum(float(np.sum(one["y"])) for one in traces)
    if not np.isfinite(total):  # B lacks a part of A
        return fig
    whole = _("of the whole logit: {less}", less=format_contribution(total))
    return fig.with_traces_and_layout(
        traces, {**layout, "annotations": [{**legend, "text": f"{legend['text']}<br>{whole}"}, *others]}
    )


def head_contribution_map(
    trace: Trace, query: int, token_id: int, contrast_id: int | None = None, layer: int | None = None, head: int = 0
) -> go.Figure:
    """Draw each head's contribution to a logit, or to a logit difference, after the query; row = layer."""
    values = direct_logit_attribution(trace, query, token_id, contrast_id).heads  # (L, H)
    largest = float(np.abs(values).max()) or 1.0
    largest_index = np.unravel_index(np.abs(values).argmax(), values.shape)
    return HEADS_FIGURE.draw(
        values=values,
        least=-largest,
        most=largest,
        numbers=[[format_contribution(value) for value in row] for row in values],
        written="%{text}" if values.shape[1] <= 12 else None,
        heads=values.size,
        logit=logit_label(trace, token_id, contrast_id),
        token=quote_token(trace.tokens[query]),
        scale=_("adds to the logit") if contrast_id is None else _("adds to the logit difference"),
        adds=contribution_phrase(values[largest_index]),
        layer=largest_index[0],
        head=largest_index[1],
        frames=[] if layer is None else [cell_frame(layer, head)],
    )


HEADS_FIGURE = FigureTemplate(
    alt=text(N_("What {heads} heads add to {logit} after {token}: most, {adds}, layer {layer} head {head}.")),
    traces=[
        go.Heatmap(
            z=value("values"),
            zmin=value("least"),
            zmax=value("most"),
            text=value("numbers"),
            texttemplate=value("written"),
            hovertemplate=text(N_("layer %{y} head %{x}<br>adds %{z:.6g}<extra></extra>")),
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": value("scale"), "side": "right"}},
        )
    ],
    layout={
        "xaxis": {"title": {"text": text(N_("head"))}, "dtick": 1, "showgrid": False},
        "yaxis": {"title": {"text": text(N_("layer"))}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
        "shapes": value("frames"),
    },
)


def source_bars(trace: Trace, selection: Selection) -> go.Figure:
    """Draw what attention takes from each token for a logit, all heads and layers together, and the rest of the logit.

    The bars add up to the logit.
    """
    query, tokens = selection.query, target_and_contrast(trace, selection)
    values = source_totals(trace, query, *tokens)
    rest = contribution_without_source(trace, query, *tokens)
    total = float(values.sum() + rest)
    names = position_labels(trace.tokens)[: query + 1]
    largest_index = int(np.abs(values).argmax())
    return SOURCES_FIGURE.draw(
        names=names,
        values=values,
        rest=[rest],
        count=query + 1,
        logit=logit_label(trace, *tokens),
        token=quote_token(trace.tokens[query]),
        adds=contribution_phrase(values[largest_index]),
        source=names[largest_index],
        total=format_number(total),
        tokens=token_axis(trace.tokens, visible=range(query + 1)),
        range=[-0.5, query + 0.5],
        label=logit_label(trace, *tokens, label),
        frame={**column_band(selection.key), "yref": "paper"},
    )


SOURCES_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "What all heads take from {count} tokens for {logit} after {token}: most, {adds}, from {source}. With the "
            "rest it adds up to {total}."
        )
    ),
    traces=[
        go.Bar(
            x=value("names"),
            y=value("values"),
            marker={"color": ATTENTION},
            hovertemplate=text(N_("from %{x}<br>adds %{y:+.6g}<extra></extra>")),
        ),
        go.Bar(
            x=[text(N_("the rest"))],
            y=value("rest"),
            xaxis="x2",
            marker={"color": RESIDUAL},
            hovertemplate=text(N_("own embedding, feed-forwards, constants<br>add %{y:+.6g}<extra></extra>")),
        ),
    ],
    layout={
        "xaxis": extend(
            "tokens",
            title={"text": text(N_("token that attention takes from"))},
            range=value("range"),
            domain=[0, 0.9],
        ),
        "xaxis2": {"domain": [0.92, 1], "showgrid": False},
        "yaxis": {"title": {"text": text(N_("part of the logit"))}},
        "annotations": note_above(text(N_("With the rest the bars sum to {total}, {logit}."), logit="label")),
        "showlegend": False,
        "hovermode": "x",  # a short bar is hard to hit
        "shapes": [value("frame")],
    },
)


def inspect_source(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive what all heads take from the clicked token, or what comes from none."""
    tokens = target_and_contrast(trace, selection)
    if point.coordinate_or_none("curve"):
        return derive_contribution_without_source(trace, selection.query, *tokens)
    return source_contribution(trace, selection.query, *tokens, get_item(range(selection.query + 1), point.column))


def contribution_phrase(value: float, format_size: Callable[[float], str] = format_number) -> str:
    """Return a contribution as a phrase: adds or takes."""
    size = format_size(abs(value))
    return _("adds {value}", value=size) if value >= 0 else _("takes {value}", value=size)


NAMES = {
    "gradient": N_("gradient × input"),
    "integrated": N_("integrated gradients"),
    "rollout": N_("attention rollout"),
    "knock_out": N_("knock-out"),
}
COLOURS = {"gradient": EMBEDDING, "integrated": EMBEDDING, "rollout": ATTENTION, "knock_out": ATTENTION}
GAP = 0.07  # between two rows, as a share of the height


def token_contribution_bars(trace: Trace, selection: Selection) -> go.Figure:
    """Draw a row of bars over the tokens for every method, each with its own scale around 0."""
    query, (token_id, contrast_id) = selection.query, target_and_contrast(trace, selection)
    contributions = token_contributions(trace, query, token_id, contrast_id)
    names = position_labels(trace.tokens)[: query + 1]
    rows, axes = [], {}
    for row, method in enumerate(METHODS):
        values, axis = contributions.by_method[method], str(row + 1) if row else ""
        rows.append(
            go.Bar(
                x=names,
                y=values,
                yaxis=f"y{axis}",
                marker={"color": COLOURS[method]},
                text=[_bar_hover(method, name, value) for name, value in zip(names, values, strict=True)],
                textposition="none",
                hovertemplate="%{text}<extra></extra>",
            )
        )
        largest_index, top = float(np.nanmax(np.abs(values), initial=0)) or 1.0, 1 - row / len(METHODS)
        axes[f"yaxis{axis}"] = {
            "range": [-1.1 * largest_index, 1.1 * largest_index],
            "domain": [top - 1 / len(METHODS) + GAP, top],
            "nticks": 5,
        }
        title = {"text": row_title(method, contributions), "x": 0, "y": top, "showarrow": False, "xanchor": "left"}
        axes.setdefault("annotations", []).append(title | {"xref": "paper", "yref": "paper", "yanchor": "bottom"})
    return figure(
        rows,
        alt=_(
            "What each of {count} tokens contributes to {logit} after {token}, by four methods. {agreement}",
            count=query + 1,
            logit=logit_label(trace, token_id, contrast_id),
            token=quote_token(trace.tokens[query]),
            agreement=agreement_text(contributions),
        ),
        xaxis={
            **token_axis(
                trace.tokens, "<br>".join(textwrap.wrap(agreement_text(contributions), 60)), visible=range(query + 1)
            ),
            "range": [-0.5, query + 0.5],
            "anchor": f"y{len(METHODS)}",
        },
        **axes,
        showlegend=False,
        hovermode="x",  # a short bar is hard to hit
        shapes=[{**column_band(selection.key), "yref": "paper"}],  # across the bars of all methods
    )


def row_title(method: str, contributions: TokenContributions) -> str:
    """Return a method's title, with its error if it is approximate."""
    if method == "integrated":
        return _(
            "integrated gradients in {steps} steps from the mean embedding: Σ {sum}, rise of the logit {change}, "
            "off by {error}",
            steps=int(contributions.arrays["steps"]),
            sum=format_number(contributions.by_method[method].sum()),
            change=format_number(contributions.f - contributions.f_baseline),
            error=format_number(abs(contributions.completeness_error)),
        )
    return translate(TITLES[method], logit=format_number(contributions.f))


TITLES = {
    "gradient": N_("gradient × input at the embedding; the logit is {logit}"),
    "rollout": N_("attention rollout: shares that sum to 1"),
    "knock_out": N_("knock-out: the logit less the logit where no later token sees this one; exact"),
}


def agreement_text(contributions: TokenContributions) -> str:
    """Describe the rank correlations of the methods in a sentence."""
    named_values = [(name, contributions.agreement(name, "knock_out")) for name in METHODS[:-1]]
    if not np.isfinite([value for _name, value in named_values]).all():
        return _("Too few tokens to say how far the methods agree.")
    correlations = [f"{translate(NAMES[name])} {format_number(value)}" for name, value in named_values]
    return _(
        "Rank correlation with the knock-out, 1 where two put the tokens in the same order: {each}; of the two "
        "gradients with one another {gradients}.",
        each=join_names(correlations),
        gradients=format_number(contributions.agreement("gradient", "integrated")),
    )


def _bar_hover(method: str, token: str, value: float) -> str:
    if np.isnan(value):
        return _("{token}: nothing comes after it", token=token)
    return f"{token}: {translate(NAMES[method])} {format_number(value)}"


def inspect_token_contribution(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the clicked token's contribution by the clicked method."""
    key, method = get_item(range(selection.query + 1), point.column), get_item(METHODS, point.coordinate("curve"))
    return token_contribution(trace, selection.query, *target_and_contrast(trace, selection), method, key)


VERIFY_CONTRIBUTIONS = verify_derived(
    "embed",
    "blocks.*.attn.pattern",
    "logits",
    against=(
        N_("the logit in the run that gradients are taken of, against the captured logits"),
        lambda trace, s: check_gradient_run(trace, s.query, *target_and_contrast(trace, s)),
    ),
)
