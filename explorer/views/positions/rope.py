"""The Positions view of models with RoPE: angles, clocks, scores by distance and wavelengths."""

import math

import numpy as np

from explorer.analysis.positions import (
    check_pair_sum,
    dims_of_pair,
    frequencies_from_angles,
    main_pair,
    pair_contribution,
    rotated_pairs,
    score_at_distance,
    score_by_distance,
    score_by_pair,
    wavelength,
    wrap_angles,
)
from explorer.architecture.formulas import ANGLES, LOCAL_ANGLES, angles_tap, score_divisor_formula
from explorer.errors import PointNotFoundError
from explorer.explain.captured import derive
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_number, quote_token
from explorer.interventions import PositionShift, RopeBaseReplacement
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.figure_template import FigureTemplate, each, extend, text, value
from explorer.views.labels import pair_dimensions_text, rope_scaling_text, shared_kv_head_text
from explorer.views.shared_plots import score_term_figure, score_term_values
from explorer.views.style import (
    ATTENTION,
    KEY,
    QUERY,
    RESIDUAL,
    SELECTED,
    column_band,
    label,
    position_labels,
    row_band,
    token_axis,
)
from explorer.views.verification import inspect_captured, verify_captured, verify_derived
from explorer.views.view import CLOCKS, Panel

WIDTH_TO_HEIGHT = 2  # of all clocks together, about
SPACING = 2.5  # between the centres of clocks, in radii


# Hovers over hands before and after rotation.
BEFORE = N_("{vector}, pair {pair} before rotation<br>({first}, {second}), rotated by {angle} rad")
AFTER = N_("{vector}, pair {pair} after rotation<br>({first}, {second}), rotated by {angle} rad")


def rotation_clocks(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Draw each pair of the query's q and the key's k as an arrow in its own circle, before and after rotation.

    Each vector's arrows are scaled by its own longest pair, so that norms compare within one vector. The main pair's
    circle is highlighted.
    """
    vectors = {
        _("q of {token}", token=label(trace.tokens[query])): (rotated_pairs(trace, "q", layer, head, query), QUERY),
        _("k of {token}", token=label(trace.tokens[key])): (rotated_pairs(trace, "k", layer, head, key), KEY),
    }
    num_pairs = trace["rope.angles"].shape[1]
    pair, columns = np.arange(num_pairs), full_row_columns(num_pairs)
    centres = SPACING * np.stack([pair % columns, -(pair // columns)], axis=1)  # (F, 2)
    turn = np.linspace(0, 2 * np.pi, 49)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    hands = []
    for name, (pairs, color) in vectors.items():
        max_norm = max(np.hypot(*pairs.before.T).max(), np.hypot(*pairs.after.T).max(), 1e-12)
        for stage, values, width, opacity in ((BEFORE, pairs.before, 1.5, 0.4), (AFTER, pairs.after, 3, 1.0)):
            tips = centres + values / max_norm
            hover = [
                translate(
                    stage,
                    vector=name,
                    pair=i,
                    first=format_number(a),
                    second=format_number(b),
                    angle=format_number(angle),
                )
                for i, ((a, b), angle) in enumerate(zip(values, pairs.angles, strict=True))
            ]
            across, up = join_strokes([np.stack([c, tip]) for c, tip in zip(centres, tips, strict=True)])
            hands.append(
                {
                    "across": across,
                    "up": up,
                    "tips_across": tips[:, 0],
                    "tips_up": tips[:, 1],
                    "line": {"color": color, "width": width},
                    "marker": {"color": color, "size": 5 if stage is BEFORE else 8},
                    "name": name if stage is AFTER else _("before"),
                    "hover": hover,
                    "group": name if stage is AFTER else "before",
                    "is_in_legend": stage is AFTER or not hands,  # “before” once: four entries would take two rows
                    "rank": 1000 if stage is AFTER else 1001,
                    "opacity": opacity,
                }
            )
    rows = -(-num_pairs // columns)
    circles_across, circles_up = join_strokes([c + circle for c in centres])
    main = main_pair(trace, layer, head, query, key)
    highlight_across, highlight_up = join_strokes(
        [c + circle * (1 if i == main else np.nan) for i, c in enumerate(centres)]
    )
    return CLOCKS_FIGURE.draw(
        circles_across=circles_across,
        circles_up=circles_up,
        highlight_across=highlight_across,
        highlight_up=highlight_up,
        main=main,
        hands=hands,
        num_pairs=num_pairs,
        layer=layer,
        head=head,
        columns=[-1.3, SPACING * (columns - 1) + 1.3],
        rows=[-SPACING * (rows - 1) - 1.4, 1.6],
        pairs=[{"pair": i, "x": x, "y": y + 1.2} for i, (x, y) in enumerate(centres)],
    ).set_meta(grid={"count": num_pairs, "columns": columns, "spacing": SPACING})


def full_row_columns(count: int) -> int:
    """Return the number of columns in which all rows are full and the shape is nearest to `WIDTH_TO_HEIGHT`."""
    shape = WIDTH_TO_HEIGHT * count
    return min(
        (columns for columns in range(1, count + 1) if count % columns == 0),
        key=lambda columns: max(columns**2, shape) / min(columns**2, shape),
    )


def join_strokes(strokes: list[np.ndarray]) -> np.ndarray:
    """Return the coordinates (2, n) of several strokes, each (m, 2), with a gap after each."""
    gap = [[np.nan, np.nan]]
    return np.concatenate([segment for stroke in strokes for segment in (stroke, gap)]).T


CLOCKS_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "{pairs} pairs of dimensions of q and k in layer {layer} head {head}, before and after rotation; pair "
            "{main} is framed."
        ),
        pairs="num_pairs",
    ),
    traces=[
        go.Scatter(
            x=value("circles_across"),
            y=value("circles_up"),
            mode="lines",
            line={"color": RESIDUAL, "width": 0.6, "simplify": False},  # else a polygon
            hoverinfo="skip",
            showlegend=False,
        ),
        each(
            "hands",
            go.Scatter(
                x=value("across"),
                y=value("up"),
                mode="lines",
                line=value("line"),
                hoverinfo="skip",
                showlegend=False,
                legendgroup=value("group"),
                opacity=value("opacity"),
            ),
            go.Scatter(
                x=value("tips_across"),
                y=value("tips_up"),
                mode="markers",
                cliponaxis=False,
                marker=value("marker"),
                name=value("name"),
                text=value("hover"),
                hovertemplate="%{text}<extra></extra>",
                showlegend=value("is_in_legend"),
                legendrank=value("rank"),
                legendgroup=value("group"),
                opacity=value("opacity"),
            ),
        ),
        go.Scatter(
            x=value("highlight_across"),
            y=value("highlight_up"),
            mode="lines",
            line={"color": SELECTED, "width": 2, "simplify": False},
            hoverinfo="skip",
            showlegend=False,
        ),
    ],
    layout={
        "xaxis": {"visible": False, "range": value("columns")},
        "yaxis": {"visible": False, "range": value("rows"), "scaleanchor": "x"},
        "legend": {"y": 1.02},
        "annotations": [
            each(
                "pairs",
                {
                    "x": value("x"),
                    "y": value("y"),
                    "text": text(N_("pair {pair}")),
                    "showarrow": False,
                    "font": {"size": 10},
                },
            )
        ],
    },
)


def score_by_pair_bars(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Draw |q||k| cos(φ + Δω) / √d as a bar for each pair; they add up to the score of the chosen cell."""
    terms = score_by_pair(trace, layer, head, query, key)
    score = trace[f"blocks.{layer}.attn.scores"][head, query, key]
    return PAIRS_FIGURE.draw(
        **score_term_values(terms) | {"frames": [column_band(main_pair(trace, layer, head, query, key))]},
        pairs=len(terms),
        score=format_number(score),
        key=quote_token(trace.tokens[key]),
    )


PAIRS_FIGURE = score_term_figure(
    hover=text(N_("pair %{x}<br>adds %{y:.4f}<extra></extra>")),
    alt=text(N_("{pairs} pairs add up to the score {score} of {key}.")),
    title={"text": text(N_("pair of dimensions (fast → slow)"))},
    dtick=1,
)


def score_by_distance_plot(trace: Trace, layer: int, head: int, query: int, key: int) -> go.Figure:
    """Draw the score of the chosen q and k at other distances, with their content fixed."""
    distances = np.arange(trace.config.context_length if len(trace) > 1 else 1)
    scores = score_by_distance(trace, layer, head, query, key, distances)
    here = query - key
    return DISTANCES_FIGURE.draw(
        distances=distances,
        scores=scores,
        here=[here],
        score_here=[scores[here]],
        query=quote_token(trace.tokens[query]),
        key=quote_token(trace.tokens[key]),
        score=format_number(scores[here]),
        distance=here,
        most=format_number(scores.max()),
        furthest=scores.argmax(),
        divisor=score_divisor_formula(trace.config),
    )


DISTANCES_FIGURE = FigureTemplate(
    alt=text(
        N_(
            "The score of {query} and {key} by their distance: {score} at {distance}, as in this run; at most {most} "
            "at {furthest}."
        )
    ),
    traces=[
        go.Scatter(
            x=value("distances"),
            y=value("scores"),
            mode="lines",
            line={"color": ATTENTION},
            hovertemplate=text(N_("distance %{x}<br>score %{y:.3f}<extra></extra>")),
            showlegend=False,
        ),
        go.Scatter(
            x=value("here"),
            y=value("score_here"),
            mode="markers",
            marker={"color": SELECTED, "size": 10},
            hovertemplate=text(N_("in this run: distance %{x}<br>score %{y:.3f}<extra></extra>")),
            showlegend=False,
        ),
    ],
    layout={
        "xaxis": {"title": {"text": text(N_("distance in tokens"))}, "showgrid": False},
        "yaxis": {"title": {"text": text(N_("score q·k / {divisor}"))}},
    },
)


def wavelength_plot(trace: Trace, layer: int = 0) -> go.Figure:
    """Draw each pair's wavelength in positions, 2π / ω, against the context length."""
    frequencies_by_pair = np.abs(frequencies_from_angles(trace[angles_tap(trace.config, layer)]))
    periods = (
        2 * np.pi / np.where(frequencies_by_pair > 0, frequencies_by_pair, np.nan)
    )  # a pair that was kept from turning has no bar
    context = trace.config.context_length
    alt = _("One token alone shows no speed: type two.")
    if len(trace) > 1:
        alt = _(
            "{turning} of {pairs} pairs make a whole turn within the context of {context}.",
            turning=int((periods <= context).sum()),
            pairs=len(periods),
            context=context,
        )
    return WAVELENGTHS_FIGURE.draw(
        pairs=np.arange(len(periods)), periods=periods, alt=alt, context=context, context_power=np.log10(context)
    )


WAVELENGTHS_FIGURE = FigureTemplate(
    alt=value("alt"),
    traces=[
        go.Bar(
            x=value("pairs"),
            y=value("periods"),
            marker={"color": RESIDUAL},
            hovertemplate=text(N_("pair %{x}<br>a turn in %{y:.4g} positions<extra></extra>")),
        )
    ],
    layout={
        "xaxis": {"title": {"text": text(N_("pair of dimensions (fast → slow)"))}, "showgrid": False, "dtick": 1},
        "yaxis": {"title": {"text": text(N_("positions a turn"))}, "type": "log", "dtick": 1},
        "shapes": [
            {
                "type": "line",
                **{"x0": 0, "x1": 1, "xref": "x domain", "y0": value("context"), "y1": value("context"), "yref": "y"},
                "line": {"color": SELECTED, "dash": "dot"},
            }
        ],
        "annotations": [
            {
                "text": text(N_("context {tokens}"), tokens="context"),
                **{"xref": "paper", "x": 0, "y": value("context_power"), "yshift": 8},
                "showarrow": False,
                "xanchor": "left",
            }
        ],
    },
)


def rotation_angle_map(trace: Trace, query: int | None = None, key: int | None = None, layer: int = 0) -> go.Figure:
    """Draw the rotation angle by position and pair, modulo one turn; hover texts have the full angle."""
    radians = trace[angles_tap(trace.config, layer)]  # (T, F)
    marks = ((query, "solid"), (key, "dot"))
    return ANGLES_FIGURE.draw(
        labels=position_labels(trace.tokens),
        wrapped=wrap_angles(radians),
        radians=radians,
        positions=len(trace),
        pairs=radians.shape[1],
        tokens=token_axis(trace.tokens),
        bands=[row_band(position, 1.5, dash=dash) for position, dash in marks if position is not None],
    )


ANGLES_FIGURE = FigureTemplate(
    alt=text(N_("Rotation angles of {positions} positions by {pairs} pairs of dimensions, fast pairs left.")),
    traces=[
        go.Heatmap(
            y=value("labels"),
            z=value("wrapped"),
            customdata=value("radians"),
            zmin=-math.pi,
            zmax=math.pi,
            hovertemplate=text(N_("position %{y}, pair %{x}<br>angle %{customdata:.4g} rad<extra></extra>")),
            colorbar={
                "title": {"text": text(N_("angle within a turn")), "side": "right"},
                "tickvals": [-math.pi, 0, math.pi],
                "ticktext": ["−π", "0", "π"],
            },
        )
    ],
    layout={
        "xaxis": {
            "title": {"text": text(N_("pair of dimensions (fast → slow)"))},
            "showgrid": False,
            "tickangle": 0,
        },
        "yaxis": extend("tokens", title={"text": text(N_("position"))}, autorange="reversed"),
        "shapes": value("bands"),
    },
)


def describe_rotation(trace: Trace, selection: Selection) -> str:
    """Return the rotation of the selected query and key, in numbers."""
    query, key = selection.query, selection.key
    pairs = rotated_pairs(trace, "q", selection.layer, selection.head, query)
    last_pair = len(pairs.angles) - 1
    norms = np.linalg.norm(pairs.before), np.linalg.norm(pairs.after)
    kv_head_label, has_rope = shared_kv_head_text(trace.config, selection.head), trace.config.has_rope(selection.layer)
    lines = (
        _(
            "{angle}; pair i: dimensions {dimensions}",
            angle=angle_formula(trace, selection.layer),
            dimensions=pair_dimensions_text(trace.config),
        ),
        rope_scaling_text(trace.config) if has_rope and not trace.config.uses_local_rope(selection.layer) else "",
        _(
            "query {query} ({query_position}): pair 0 is rotated by {first} rad, pair {slow} by {last} rad; its "
            "distance to key {key} ({key_position}) is {distance}",
            query=quote_token(trace.tokens[query]),
            query_position=query,
            first=format_number(pairs.angles[0]),
            slow=last_pair,
            last=format_number(pairs.angles[last_pair]),
            key=quote_token(trace.tokens[key]),
            key_position=key,
            distance=query - key,
        ),
        _("k is that of {shared}", shared=kv_head_label) if kv_head_label else "",
        _(
            "‖q‖ = {before} before, {after} after: rotation changes no length   recomputed from q and the angles, off "
            "by {error}",
            before=format_number(norms[0]),
            after=format_number(norms[1]),
            error=format_number(pairs.error),
        ),
    )
    return "\n".join(filter(None, lines))


def angle_formula(trace: Trace, layer: int) -> str:
    """Format the formula of a layer's rotation angles, with the interventions on them."""
    if not trace.config.has_rope(layer):
        return _(
            "layer {layer} does not rotate: its angles are 0; angles by position are those of the layers that do",
            layer=layer,
        )
    config, interventions = (
        trace.config,
        [intervention for intervention in trace.edits if intervention.tap == "rope.angles"],
    )
    amounts = {type(intervention): intervention.amount for intervention in interventions}
    template = SHIFTED_ANGLE if PositionShift in amounts else ANGLE
    theta = (
        config.local_rope_theta
        if config.uses_local_rope(layer)
        else amounts.get(RopeBaseReplacement, config.rope_theta)
    )
    r = config.num_rotary_dims
    width = "d" if r == config.d_head else "r"
    text = translate(template, shift=amounts.get(PositionShift), theta=theta, width=width, d=r)
    if r < config.d_head:
        text = _("{angle}; from pair {first} on they stand still", angle=text, first=r // 2)
    for intervention in interventions:
        if not isinstance(intervention, PositionShift | RopeBaseReplacement):
            text = _("{angle}, then {change}", angle=text, change=intervention.describe(config))
    return text


ANGLE = N_("angle(position, pair) = position · θ^(−2·pair/{width}), θ = {theta:.10g}, {width} = {d}")
SHIFTED_ANGLE = N_(
    "angle(position, pair) = (position + {shift:g}) · θ^(−2·pair/{width}), θ = {theta:.10g}, {width} = {d}"
)


VERIFY_PAIRS = verify_derived(
    "blocks.{layer}.attn.q",
    "blocks.{layer}.attn.k",
    *(ANGLES, LOCAL_ANGLES),
    "blocks.{layer}.attn.scores",
    against=(
        N_("the sum of the pairs against the captured score"),
        lambda trace, s: check_pair_sum(trace, s.layer, s.head, s.query, s.key),
    ),
)


def inspect_score_by_distance(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the score of the selected query and key at the clicked distance."""
    distance = get_item(range(trace.config.context_length), point.column)
    return score_at_distance(trace, selection.layer, selection.head, selection.query, selection.key, distance)


def inspect_clock_hand(trace: Trace, selection: Selection, point: ClickedPoint) -> tuple[Derivation, Derivation]:
    """Derive both elements of the pair at a hand's tip."""
    vector, position, when = parse_hand_curve(selection, point.coordinate("curve"))
    name = f"blocks.{selection.layer}.attn.{vector}{when}"
    first, second = np.arange(trace.config.d_head)[dims_of_pair(trace.config, point.coordinate("item"))]
    head = selection.head * len(trace[name]) // trace.config.num_heads
    return derive(trace, name, (head, position, first)), derive(trace, name, (head, position, second))


def parse_hand_curve(selection: Selection, curve: int) -> tuple[str, int, str]:
    """Return the vector ("q" or "k"), the position and the suffix ("_rot" after rotation) of a trace of hand tips.

    Raises:
        PointNotFoundError: the trace has no tips.
    """
    vectors = (("q", selection.query), ("k", selection.key))
    hands = {
        2 + 4 * i + 2 * j: (*vector, when) for i, vector in enumerate(vectors) for j, when in enumerate(("", "_rot"))
    }
    if curve not in hands:
        raise PointNotFoundError(_("line {line} has no tips", line=curve))
    return hands[curve]


ANGLE_TAPS = (ANGLES,)
PANELS = (
    Panel(
        name="clocks",
        template=CLOCKS_FIGURE,
        no_difference_reason=CLOCKS,
        title=N_("The head’s q and k, before and after rotation"),
        heading=N_("Layer {layer} head {head}: q and k, rotated"),
        draw=lambda trace, s: rotation_clocks(trace, s.layer, s.head, s.query, s.key),
        inspect=inspect_clock_hand,
        required_taps=ANGLE_TAPS,
        verify=verify_captured(
            *(ANGLES, LOCAL_ANGLES),
            *(f"blocks.{{layer}}.attn.{vector}{when}" for vector in "qk" for when in ("", "_rot")),
        ),
        height=400,
        width="half",
    ),
    Panel(
        name="pairs",
        template=PAIRS_FIGURE,
        title=N_("What each pair adds to the chosen score"),
        heading=N_("What each pair adds to the score of {query} → {key}"),
        draw=lambda trace, s: score_by_pair_bars(trace, s.layer, s.head, s.query, s.key),
        inspect=lambda trace, s, point: pair_contribution(
            trace, s.layer, s.head, s.query, s.key, point.coordinate("item")
        ),
        required_taps=ANGLE_TAPS,
        verify=VERIFY_PAIRS,
        height=280,
        width="half",
    ),
    Panel(
        name="distances",
        template=DISTANCES_FIGURE,
        title=N_("The same q and k at other distances"),
        draw=lambda trace, s: score_by_distance_plot(trace, s.layer, s.head, s.query, s.key),
        inspect=inspect_score_by_distance,
        required_taps=ANGLE_TAPS,
        verify=VERIFY_PAIRS,
        height=280,
        width="half",
    ),
    Panel(
        name="angles",
        template=ANGLES_FIGURE,
        title=N_("Angle by position and pair"),
        draw=lambda trace, s: rotation_angle_map(trace, s.query, s.key, s.layer),
        click_selects={"y": "query"},
        required_taps=ANGLE_TAPS,
        verify=verify_captured(ANGLES, LOCAL_ANGLES),
        inspect=lambda trace, s, point: inspect_captured(angles_tap(trace.config, s.layer), "y", "x")(trace, s, point),
        height=420,
        width="half",
    ),
    Panel(
        name="wavelengths",
        template=WAVELENGTHS_FIGURE,
        title=N_("How far a pair goes for a whole turn"),
        draw=lambda trace, s: wavelength_plot(trace, s.layer),
        inspect=lambda trace, s, point: wavelength(trace, s.layer, point.coordinate("item")),
        required_taps=ANGLE_TAPS,
        verify=verify_derived(ANGLES, LOCAL_ANGLES),
        height=420,
        width="half",
    ),
)
