"""Figures of one head’s attention: heatmap, bars and lines of its pattern, and the scores behind its weights."""

from collections.abc import Sequence
from itertools import count

import numpy as np

from explorer.analysis.attention import (
    PATTERNS,
    displayed_pattern,
    query_attention_stages,
    score_by_dimension,
    select_keys,
)
from explorer.architecture.formulas import score_divisor_formula, score_divisor_in_numbers, softcap_formula
from explorer.explain.notation import (
    format_cell_number,
    format_number,
    format_six_digits,
    quote_token,
    quote_token_in_text,
    repeated_position,
)
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, each, extend, text, value
from explorer.views.labels import masked_keys_text
from explorer.views.shared_plots import score_term_figure, score_term_values
from explorer.views.style import (
    ATTENTION,
    MONO,
    RESIDUAL,
    SELECTED,
    TOKEN_AXIS_KEY,
    cell_frame,
    column_frame,
    label,
    numbered_axis,
    position_labels,
    row_band,
    token_axis,
    window_around,
)
from explorer.views.view import HeadHeatmaps


def all_head_patterns(trace: Trace) -> HeadHeatmaps:
    """Return the patterns of every head of every layer."""
    values = trace.layers("blocks.*.attn.pattern")  # (L, H, T, T)
    layers, heads = values.shape[:2]
    alt = _("Attention patterns of {heads} heads in each of {layers} layers; choose one.", heads=heads, layers=layers)
    return HeadHeatmaps(values, alt)


def pattern_heatmap(
    trace: Trace,
    layer: int,
    head: int,
    query: int | None = None,
    key: int | None = None,
    kind: str = "weight",
    window: int = 0,
    chosen_heads: Sequence[tuple[int, int]] = (),
) -> go.Figure:
    """Draw one of `PATTERNS`: row = query, column = key; the chosen cell framed.

    Colours of weights run from 0 to 1, those of value-weighted attention from 0 to its maximum. `window` tokens
    around the cell are visible at first, all where 0.

    Args:
        chosen_heads: (layer, head) of the heads that the kinds "chosen_mean" and "chosen_max" aggregate.
    """
    values = displayed_pattern(trace, layer, head, kind, chosen_heads)  # (T, T)
    queries, keys = (window_around(position or 0, window, len(trace)) for position in (query, key))
    if kind in ("layer_mean", "layer_max"):
        whose = _("layer {layer}", layer=layer)
    else:
        heads = (chosen_heads if kind in ("chosen_mean", "chosen_max") else ()) or ((layer, head),)
        whose = ", ".join(_("layer {layer} head {head}", layer=i, head=j) for i, j in heads)
    row = [] if query is None else [row_band(query)]
    return PATTERN_FIGURE.draw(
        labels=position_labels(trace.tokens),
        weights=np.where(np.tri(len(trace), dtype=bool), values, np.nan),
        most=float(values.max()) or 1.0 if kind == "moved" else 1,
        measure=_("weight × length") if kind == "moved" else _("weight"),
        gap=0.5 if len(keys) <= 48 else 0,
        whose=whose,
        tokens=len(trace),
        kind=translate(PATTERNS[kind]),
        keys=token_axis(trace.tokens, max_labels=32, visible=keys),
        key_range=[keys[0] - 0.5, keys[-1] + 0.5],
        queries=token_axis(trace.tokens, visible=queries),
        query_range=[queries[-1] + 0.5, queries[0] - 0.5],
        frames=row if key is None else [*row, cell_frame(query, key)],
    )


PATTERN_FIGURE = FigureTemplate(
    alt=text(N_("Attention pattern of {whose}, {tokens} queries by {tokens} keys: {kind}.")),
    traces=[
        go.Heatmap(
            x=value("labels"),
            y=value("labels"),
            z=value("weights"),
            zmin=0,
            zmax=value("most"),
            hovertemplate=text(N_("query %{{y}} → key %{{x}}<br>{measure} %{{z:.6g}}<extra></extra>")),
            hoverongaps=False,
            xgap=value("gap"),
            ygap=value("gap"),
            colorbar={"title": {"text": value("measure"), "side": "right"}},
        )
    ],
    layout={
        "xaxis": extend("keys", title={"text": text(N_("key (looked at)"))}, range=value("key_range")),
        "yaxis": extend("queries", title={"text": text(N_("query (looks back)"))}, range=value("query_range")),
        "shapes": value("frames"),
        "margin": {"t": 18},  # as high as the first row of the heads beside it
    },
)


def query_weight_bars(trace: Trace, layer: int, head: int, query: int, key: int | None = None) -> go.Figure:
    """Draw one query's weights as bars over its keys; they sum to 1 unless an intervention changes them."""
    weights = trace[f"blocks.{layer}.attn.pattern"][head, query, : query + 1]
    strongest, finite = int(weights.argmax()), np.nan_to_num(weights)
    tokens = trace.tokens[: query + 1]
    labels = position_labels(tokens)
    return ROW_FIGURE.draw(
        labels=labels,
        weights=weights,
        chosen=[] if key is None else [{"chosen_label": [labels[key]], "chosen_weight": [weights[key]]}],
        token=quote_token(trace.tokens[query]),
        position=query,
        weight=format_number(weights[strongest]),
        key=quote_token(tokens[strongest]),
        strongest=strongest,
        keys=token_axis(tokens),
        range=[min(0, finite.min()), max(1, finite.max())],
    )


HOVER_KEY_WEIGHT = text(N_("key %{hovertext}<br>weight %{y:.6g}<extra></extra>"))
ROW_FIGURE = FigureTemplate(
    alt=text(N_("Attention of {token} at position {position}: most, {weight}, to {key} at {strongest}.")),
    traces=[
        go.Bar(
            x=value("labels"),
            y=value("weights"),
            hovertext=value("labels"),
            hovertemplate=HOVER_KEY_WEIGHT,
        ),
        each(
            "chosen",
            go.Bar(
                x=value("chosen_label"),
                y=value("chosen_weight"),
                hovertext=value("chosen_label"),
                hovertemplate=HOVER_KEY_WEIGHT,
                marker={"color": SELECTED},
            ),
        ),
    ],
    layout={
        "xaxis": extend("keys", title={"text": text(N_("key"))}),
        "yaxis": {"range": value("range"), "title": {"text": text(N_("weight"))}},
        "barmode": "overlay",
        "showlegend": False,
    },
)


MAX_LINE_TOKENS = 48  # tokens between which lines are drawn
MIN_DRAWN_WEIGHT = 0.05  # weight of a line
OPACITIES = np.linspace(MIN_DRAWN_WEIGHT, 1, 7)[:-1]


def attention_lines(trace: Trace, layer: int, head: int, query: int, key: int = 0) -> go.Figure:
    """Draw a line from every query, left, to every key that it attends to, right; opacity grows with the weight.

    In a long run, the tokens around the chosen query are drawn.
    """
    end = min(len(trace), max(MAX_LINE_TOKENS, query + 1 + MAX_LINE_TOKENS // 4))
    visible = range(max(0, end - MAX_LINE_TOKENS), end)
    weights = trace[f"blocks.{layer}.attn.pattern"][head][visible.start : end, visible.start : end]  # (n, n)
    lines = []
    rows, columns = np.nonzero(weights >= MIN_DRAWN_WEIGHT)
    levels = np.digitize(weights[rows, columns], OPACITIES)
    ends = np.stack([rows, columns], axis=1) + visible.start  # (lines, 2): query, key
    for level, opacity in enumerate(OPACITIES, start=1):
        for chosen, color in ((False, ATTENTION), (True, SELECTED)):
            selected_ends = ends[(levels == level) & ((ends[:, 0] == query) == chosen)]
            if len(selected_ends):
                lines.append(
                    {
                        "across": np.tile([0, 1, np.nan], len(selected_ends)),
                        "down": np.column_stack([selected_ends, np.full(len(selected_ends), np.nan)]).ravel(),
                        "line": {"color": color, "width": 3 if chosen else 1.5},
                        "opacity": opacity,
                    }
                )
    names, sides = [label(trace.tokens[i]) for i in visible], []
    weights = trace[f"blocks.{layer}.attn.pattern"][head]
    for x, side, token_hover in ((0, "middle left", query_hover), (1, "middle right", key_hover)):
        chosen = key if x else query
        weight_texts = [weight_hover(weights, *((query, i) if x else (i, key))) for i in visible]
        sides.append(
            {
                "across": np.full(len(visible), x),
                "down": list(visible),
                "marker": {"size": 6, "color": [SELECTED if i == chosen else RESIDUAL for i in visible]},
                "names": names,
                "side": side,
                "ends": [(max(query, i), i) if x else (i, min(i, key)) for i in visible],
                "hover": [
                    f"{token_hover(i, name)}<br>{weight}"
                    for i, name, weight in zip(visible, names, weight_texts, strict=True)
                ],
            }
        )
    range_text, head_label = "", _("layer {layer} head {head}", layer=layer, head=head)
    if len(visible) < len(trace):
        range_text = _("tokens {first} to {last} of {total}", first=visible.start, last=end - 1, total=len(trace))
        head_label = f"{head_label} ({range_text})"
    fig = LINES_FIGURE.draw(
        lines=lines,
        sides=sides,
        whose=head_label,
        token=quote_token(trace.tokens[query]),
        title=range_text,
        range=[end - 0.5, visible.start - 0.5],
    )
    fig.set_meta(lines=len(trace))  # so that the page shows some of them alone
    return fig


LINES_FIGURE = FigureTemplate(
    alt=text(N_("Lines from queries to keys of {whose}; {token} is chosen.")),
    traces=[
        each(
            "lines",
            go.Scatter(
                x=value("across"),
                y=value("down"),
                mode="lines",
                line=value("line"),
                opacity=value("opacity"),
                hoverinfo="skip",
                showlegend=False,
            ),
        ),
        each(
            "sides",
            go.Scatter(
                x=value("across"),
                y=value("down"),
                mode="markers+text",
                marker=value("marker"),
                text=value("names"),
                textposition=value("side"),
                textfont={"family": MONO, "size": 11},
                customdata=value("ends"),
                hovertext=value("hover"),
                hovertemplate="%{hovertext}<extra></extra>",
                showlegend=False,
            ),
        ),
    ],
    layout={
        "xaxis": {
            "range": [-0.35, 1.35],
            "tickvals": [0, 1],
            "ticktext": [text(N_("query")), text(N_("key"))],
            "side": "top",
            "showgrid": False,
            "zeroline": False,
            "title": {"text": value("title")},
        },
        "yaxis": {"visible": False, "range": value("range")},
    },
)


def weight_hover(weights: np.ndarray, query: int, key: int) -> str:
    """Return the hover text of the weight from a query to a key."""
    if key > query:
        return _("not seen: after the query")
    weight = weights[query, key]
    return _("from query {query} to key {key}: weight {weight:.6g}", query=query, key=key, weight=weight)


def query_hover(position: int, token: str) -> str:
    """Return the hover text of a query."""
    return _("query {position} {token}", position=position, token=token)


def key_hover(position: int, token: str) -> str:
    """Return the hover text of a key."""
    return _("key {position} {token}", position=position, token=token)


MAX_STAGE_KEYS = 12  # keys of a long text whose numbers are written out
BLOCK_GAP = 0.01  # between keys that do not follow one another, as a share of the width


def attention_stages(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Draw the chosen query's numbers from dot products to weights: a row for each stage, a column for each key.

    Colours compare within a row. Of many keys the chosen one and the heaviest are drawn, in the order of the text.
    """
    steps = query_attention_stages(trace, layer, head, query)
    masked, cap = np.where(steps.allowed, steps.capped, -np.inf), trace.config.score_cap
    softcap_row = {_("capped = {cap}", cap=softcap_formula("score", cap)): steps.capped} if cap else {}
    rows = {
        "q·k": steps.dots,
        _("score = q·k / {divisor}", divisor=score_divisor_in_numbers(trace.config)): steps.scores,
        **softcap_row,
        masked_keys_text(trace.config, layer, not steps.allowed.all()): masked,
        _("weight = softmax"): steps.weights,
        _("length of Wₒ v"): steps.output_norms,
        _("moved = weight × length"): steps.weights * steps.output_norms,
    }
    values = np.stack(list(rows.values()))  # (6 or 7, T)
    finite = np.where(np.isfinite(values), values, np.nan)
    largest = np.array([np.abs(row[np.isfinite(row)]).max(initial=0.0) or 1.0 for row in values])[:, None]
    keys = select_keys(steps.weights, steps.allowed, query, key, MAX_STAGE_KEYS)
    blocks, names = stage_key_blocks(len(trace), keys, key), position_labels(trace.tokens)
    return STAGES_FIGURE.draw(
        blocks=[
            {
                "axis": axis,
                "keys": keys,
                "shades": (finite / largest)[:, keys],
                "numbers": [list(map(format_cell_number, row)) for row in values[:, keys]],
                "exact": [[f"{names[at]}: {format_six_digits(row[at])}" for at in keys] for row in values],
            }
            for axis, keys in blocks.items()
        ],
        rows=list(rows),
        axes=stage_axes(trace.tokens, blocks, key_axis_title(steps.weights, np.concatenate(list(blocks.values())))),
        anchor=next(iter(blocks)),
        query=quote_token_in_text(trace.tokens, query),
        key=quote_token_in_text(trace.tokens, key),
        score=format_number(steps.scores[key]),
        weight=format_number(steps.weights[key]),
        frame=column_frame(key, len(rows)),
    )


STAGES_FIGURE = FigureTemplate(
    alt=text(N_("From products to weights: {query} gives {key} a score of {score} and a weight of {weight}.")),
    traces=[
        each(
            "blocks",
            go.Heatmap(
                x=value("keys"),
                y=value("rows"),
                xaxis=value("axis"),
                z=value("shades"),
                zmin=-1,
                zmax=1,
                showscale=False,
                text=value("numbers"),
                texttemplate="%{text}",
                textfont={"family": MONO, "size": 11},
                hovertext=value("exact"),
                hovertemplate=text(N_("%{y}<br>key %{hovertext}<extra></extra>")),
                xgap=1,
                ygap=1,
            ),
        )
    ],
    layout=extend(
        "axes",
        yaxis={"autorange": "reversed", "showgrid": False, "anchor": value("anchor")},
        shapes=[value("frame")],
    ),
)


def stage_key_blocks(num_keys: int, selected: Sequence[int], chosen: int) -> dict[str, list[int]]:
    """Return the drawn keys by their axis, from left to right: each row of neighbours has one, the chosen key's is "x".

    A text that has hardly more keys than the selected is drawn whole.
    """
    if num_keys <= MAX_STAGE_KEYS + 2:
        return {"x": list(range(num_keys))}
    starts = np.flatnonzero(np.diff(selected) > 1) + 1
    neighbours = [block.tolist() for block in np.split(np.asarray(selected), starts)]
    names = (f"x{number}" for number in count(2))
    return {"x" if chosen in block else next(names): block for block in neighbours}


def stage_axes(tokens: Sequence[str], blocks: dict[str, list[int]], title: str) -> dict[str, dict]:
    """Return the settings of the blocks' axes, side by side, as wide as they have keys; the title is in the middle."""
    num_keys = sum(map(len, blocks.values()))
    width, left, axes = (1 - BLOCK_GAP * (len(blocks) - 1)) / num_keys, 0.0, {}
    middle = np.concatenate(list(blocks.values()))[num_keys // 2]
    for axis, keys in blocks.items():
        right = left + width * len(keys)
        settings = numbered_axis(tokens, title if middle in keys else "", keys)
        settings |= {
            "ticktext": [label(tokens[key]) + repeated_position(tokens, key) for key in keys],
            "tickangle": -90,
        }
        if axis != "x":
            del settings[TOKEN_AXIS_KEY]
        axes[axis.replace("x", "xaxis")] = settings | {"domain": [left, min(1, right)]}
        left = right + BLOCK_GAP
    return axes


def key_axis_title(weights: np.ndarray, keys: np.ndarray) -> str:
    """Return the title of the axis of keys, with the share of attention to keys that are not drawn."""
    num_hidden = len(weights) - len(keys)
    if not num_hidden:
        return _("key")
    return _(
        "the chosen key and the heaviest (the {count} others have {elsewhere} of the weight together)",
        count=num_hidden,
        elsewhere=format_number(np.delete(weights, keys).sum(dtype=np.float64)),
    )


def score_by_dimension_bars(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Draw qᵢ kᵢ / √d as a bar for each dimension; they add up to the score of the chosen cell."""
    terms = score_by_dimension(trace, layer, head, query, key)
    score = trace[f"blocks.{layer}.attn.scores"][head, query, key]
    return DIMENSIONS_FIGURE.draw(
        **score_term_values(terms),
        count=len(terms),
        score=format_number(score),
        divisor=score_divisor_formula(trace.config),
    )


DIMENSIONS_FIGURE = score_term_figure(
    hover=text(N_("dimension %{x}<br>adds %{y:.6g}<extra></extra>")),
    alt=text(N_("{count} products of q and k that add up to the score {score}.")),
    title={"text": text(N_("dimension i of q and k, which adds qᵢ kᵢ / {divisor}"))},
)
