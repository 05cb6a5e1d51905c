"""The Positions view of models that turn queries and keys by them: RoPE."""

import numpy as np

from explorer.analysis.rope import rotated_pairs, wrapped
from explorer.architecture.attention import ANGLES, LOCAL_ANGLES, angles_of
from explorer.explain.analysed import scores
from explorer.explain.analysed.scores import dims_of_pair
from explorer.explain.captured import derivation_of
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point
from explorer.language import N_, _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.state.interventions import Base, Shift
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.checks import cell, recomputed, worked_out
from explorer.views.labels import dimensions_of_pair, shared_head, slowed
from explorer.views.positions.clocks import clocks
from explorer.views.positions.rope_detail import by_distance, by_pair, wavelengths
from explorer.views.style import SELECTED, figure, positions, token_axis
from explorer.views.two_runs.alone import CLOCKS, alone
from explorer.views.view import Panel


def angles(trace: Trace, query: int | None = None, key: int | None = None, layer: int = 0) -> go.Figure:
    """Rotation angle by position and pair, wrapped to one turn; hover has the whole angle."""
    radians = trace[angles_of(trace.config, layer)]  # (T, F)
    pairs = radians.shape[1]
    fig = figure(
        go.Heatmap(
            y=positions(trace.tokens),
            z=wrapped(radians),
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
    query, key = selection.query, selection.key
    pairs = rotated_pairs(trace, "q", selection.layer, selection.head, query)
    slow = len(pairs.angles) - 1
    norms = np.linalg.norm(pairs.before), np.linalg.norm(pairs.after)
    shared, rotates = shared_head(trace.config, selection.head), trace.config.rotates(selection.layer)
    lines = (
        _(
            "{angle}; pair i: dimensions {dimensions}",
            angle=angle(trace, selection.layer),
            dimensions=dimensions_of_pair(trace.config),
        ),
        slowed(trace.config) if rotates and not trace.config.turns_locally(selection.layer) else "",
        _(
            "query {query} ({query_position}): pair 0 turns by {first} rad, pair {slow} by {last} rad; its distance to "
            "key {key} ({key_position}) is {distance}",
            query=quoted(trace.tokens[query]),
            query_position=query,
            first=number(pairs.angles[0]),
            slow=slow,
            last=number(pairs.angles[slow]),
            key=quoted(trace.tokens[key]),
            key_position=key,
            distance=query - key,
        ),
        _("k is that of {shared}", shared=shared) if shared else "",
        _(
            "‖q‖ = {before} before, {after} after: turning changes no length   recomputed from q and the angles, off "
            "by {error}",
            before=number(norms[0]),
            after=number(norms[1]),
            error=number(pairs.error),
        ),
    )
    return "\n".join(filter(None, lines))


def angle(trace: Trace, layer: int) -> str:
    """By how much a layer turns a pair, with what was changed of it."""
    if not trace.config.rotates(layer):
        return _(
            "layer {layer} turns nothing: its angles are 0, and those by position are of layers that turn", layer=layer
        )
    config, edits = trace.config, [edit for edit in trace.edits if edit.tap == "rope.angles"]
    amounts = {type(edit): edit.amount for edit in edits}
    template = SHIFTED if Shift in amounts else ANGLE
    theta = config.local_rope_theta if config.turns_locally(layer) else amounts.get(Base, config.rope_theta)
    r = config.turned_dims
    width = "d" if r == config.d_head else "r"
    said = look_up(template, shift=amounts.get(Shift), theta=theta, width=width, d=r)
    if r < config.d_head:
        said = _("{angle}; from pair {first} on they stand still", angle=said, first=r // 2)
    for edit in edits:
        if not isinstance(edit, Shift | Base):
            said = _("{angle}, then {change}", angle=said, change=edit.words(config))
    return said


ANGLE = N_("angle(position, pair) = position · θ^(−2·pair/{width}), θ = {theta:.10g}, {width} = {d}")
SHIFTED = N_("angle(position, pair) = (position + {shift:g}) · θ^(−2·pair/{width}), θ = {theta:.10g}, {width} = {d}")


MARK_OF_PAIRS = worked_out(
    "blocks.{layer}.attn.q",
    "blocks.{layer}.attn.k",
    *(ANGLES, LOCAL_ANGLES),
    "blocks.{layer}.attn.scores",
    against=(
        N_("the sum of the pairs against the captured score"),
        lambda trace, s: scores.sum_of_pairs(trace, s.layer, s.head, s.query, s.key),
    ),
)


def inspect_distance(trace: Trace, selection: Selection, point: Point) -> Derivation:
    if point.column >= trace.config.context_length:
        raise NoSuchPoint(_("no two positions are {distance} apart", distance=point.column))
    return scores.at_distance(trace, selection.layer, selection.head, selection.query, selection.key, point.column)


def inspect_hand(trace: Trace, selection: Selection, point: Point) -> tuple[Derivation, Derivation]:
    """Both numbers of the pair at a hand's tip."""
    vector, position, when = hand(selection, point.of("curve"))
    name = f"blocks.{selection.layer}.attn.{vector}{when}"
    first, second = np.arange(trace.config.d_head)[dims_of_pair(trace.config, point.of("item"))]
    head = selection.head * len(trace[name]) // trace.config.num_heads
    return derivation_of(trace, name, (head, position, first)), derivation_of(trace, name, (head, position, second))


def hand(selection: Selection, curve: int) -> tuple[str, int, str]:
    """Which vector's hands a line of the picture is, at which position, and "_rot" where they are turned."""
    vectors = (("q", selection.query), ("k", selection.key))
    tips = {
        2 + 4 * i + 2 * j: (*vector, when) for i, vector in enumerate(vectors) for j, when in enumerate(("", "_rot"))
    }
    if curve not in tips:
        raise NoSuchPoint(_("line {line} has no tips", line=curve))
    return tips[curve]


TURNED = (ANGLES,)
PANELS = (
    Panel(
        name="clocks",
        alone=alone(CLOCKS),
        title=N_("The chosen head's q and k, pair by pair, before (faint) and after rotation"),
        draw=lambda trace, s: clocks(trace, s.layer, s.head, s.query, s.key),
        inspect=inspect_hand,
        needs=TURNED,
        mark=recomputed(
            *(ANGLES, LOCAL_ANGLES),
            *(f"blocks.{{layer}}.attn.{vector}{when}" for vector in "qk" for when in ("", "_rot")),
        ),
        height=320,
        min_width=640,
    ),
    Panel(
        name="pairs",
        title=N_("What each pair adds to the score of the chosen query and key"),
        draw=lambda trace, s: by_pair(trace, s.layer, s.head, s.query, s.key),
        inspect=lambda trace, s, point: scores.pair(trace, s.layer, s.head, s.query, s.key, point.of("item")),
        needs=TURNED,
        mark=MARK_OF_PAIRS,
        height=280,
        width="half",
    ),
    Panel(
        name="distances",
        title=N_("The same q and k at other distances"),
        draw=lambda trace, s: by_distance(trace, s.layer, s.head, s.query, s.key),
        inspect=inspect_distance,
        needs=TURNED,
        mark=MARK_OF_PAIRS,
        height=280,
        width="half",
    ),
    Panel(
        name="angles",
        title=N_("Angle by position and pair"),
        draw=lambda trace, s: angles(trace, s.query, s.key, s.layer),
        selects={"y": "query"},
        needs=TURNED,
        mark=recomputed(ANGLES, LOCAL_ANGLES),
        inspect=lambda trace, s, point: cell(angles_of(trace.config, s.layer), "y", "x")(trace, s, point),
        height=420,
        width="half",
    ),
    Panel(
        name="wavelengths",
        title=N_("How far a pair goes for a whole turn"),
        draw=lambda trace, s: wavelengths(trace, s.layer),
        inspect=lambda trace, s, point: scores.wavelength(trace, s.layer, point.of("item")),
        needs=TURNED,
        mark=worked_out(ANGLES, LOCAL_ANGLES),
        height=420,
        width="half",
    ),
)
