"""The Positions view of models with RoPE."""

import numpy as np

from explorer.analysis.positions import rotated_pairs, wrap_angles
from explorer.architecture.attention import ANGLES, LOCAL_ANGLES, angles_tap
from explorer.errors import PointNotFoundError
from explorer.explain.captured import derive
from explorer.explain.clicked_point import ClickedPoint
from explorer.explain.derivation import Derivation
from explorer.explain.derived import positions as derived_positions
from explorer.explain.derived.positions import dims_of_pair
from explorer.explain.notation import format_number, quote_token
from explorer.interventions import PositionShift, RopeBaseReplacement
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.model_labels import pair_dimensions_text, rope_scaling_text, shared_kv_head_text
from explorer.views.positions.rope_clocks import rotation_clocks
from explorer.views.positions.rope_scores_and_wavelengths import score_by_distance_plot, score_by_pair_bars, wavelengths
from explorer.views.style import SELECTED, figure, positions, token_axis
from explorer.views.two_runs.no_difference import CLOCKS, make_no_difference_reason
from explorer.views.verification import inspect_captured, verify_captured, verify_derived
from explorer.views.view import Panel


def rotation_angle_map(trace: Trace, query: int | None = None, key: int | None = None, layer: int = 0) -> go.Figure:
    """Draw the rotation angle by position and pair, modulo one turn; hover texts have the full angle."""
    radians = trace[angles_tap(trace.config, layer)]  # (T, F)
    pairs = radians.shape[1]
    fig = figure(
        go.Heatmap(
            y=positions(trace.tokens),
            z=wrap_angles(radians),
            customdata=radians,
            zmin=-np.pi,
            zmax=np.pi,
            autocolorscale=True,
            hovertemplate=_("position %{y}, pair %{x}<br>angle %{customdata:.4g} rad<extra></extra>"),
            colorbar={
                "title": {"text": _("angle within a turn"), "side": "right"},
                "tickvals": [-np.pi, 0, np.pi],
                "ticktext": ["−π", "0", "π"],
            },
        ),
        alt=_(
            "Rotation angles of {positions} positions by {pairs} pairs of dimensions, fast pairs left.",
            positions=len(trace),
            pairs=pairs,
        ),
        xaxis={
            "title": {"text": _("pair of dimensions (fast → slow)")},
            "showgrid": False,
            "tickangle": 0,
        },
        yaxis={**token_axis(trace.tokens, _("position")), "autorange": "reversed"},
    )
    for position, dash in ((query, "solid"), (key, "dot")):
        if position is not None:
            line = {"color": SELECTED, "width": 1.5, "dash": dash}
            fig.add_hrect(position - 0.5, position + 0.5, line=line)
    return fig


def formula(trace: Trace, selection: Selection) -> str:
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
            "query {query} ({query_position}): pair 0 turns by {first} rad, pair {slow} by {last} rad; its distance to "
            "key {key} ({key_position}) is {distance}",
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
            "‖q‖ = {before} before, {after} after: turning changes no length   recomputed from q and the angles, off "
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
            "layer {layer} turns nothing: its angles are 0, and those by position are of layers that turn", layer=layer
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
        lambda trace, s: derived_positions.check_pair_sum(trace, s.layer, s.head, s.query, s.key),
    ),
)


def inspect_score_by_distance(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the score of the selected query and key at the clicked distance."""
    if point.column >= trace.config.context_length:
        raise PointNotFoundError(_("no two positions are {distance} apart", distance=point.column))
    return derived_positions.score_at_distance(
        trace, selection.layer, selection.head, selection.query, selection.key, point.column
    )


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
        no_difference_reason=make_no_difference_reason(CLOCKS),
        title=N_("The chosen head's q and k, pair by pair, before (faint) and after rotation"),
        draw=lambda trace, s: rotation_clocks(trace, s.layer, s.head, s.query, s.key),
        inspect=inspect_clock_hand,
        required_taps=ANGLE_TAPS,
        verify=verify_captured(
            *(ANGLES, LOCAL_ANGLES),
            *(f"blocks.{{layer}}.attn.{vector}{when}" for vector in "qk" for when in ("", "_rot")),
        ),
        height=320,
        min_width=640,
    ),
    Panel(
        name="pairs",
        title=N_("What each pair adds to the score of the chosen query and key"),
        draw=lambda trace, s: score_by_pair_bars(trace, s.layer, s.head, s.query, s.key),
        inspect=lambda trace, s, point: derived_positions.pair_contribution(
            trace, s.layer, s.head, s.query, s.key, point.coordinate("item")
        ),
        required_taps=ANGLE_TAPS,
        verify=VERIFY_PAIRS,
        height=280,
        width="half",
    ),
    Panel(
        name="distances",
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
        title=N_("How far a pair goes for a whole turn"),
        draw=lambda trace, s: wavelengths(trace, s.layer),
        inspect=lambda trace, s, point: derived_positions.wavelength(trace, s.layer, point.coordinate("item")),
        required_taps=ANGLE_TAPS,
        verify=verify_derived(ANGLES, LOCAL_ANGLES),
        height=420,
        width="half",
    ),
)
