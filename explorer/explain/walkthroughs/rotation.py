"""Walkthrough of RoPE on one pair of dimensions of a query and a key."""

import numpy as np

from explorer.analysis.rope import pair_scales, rotated_pairs, rotation_angles, score_by_pair
from explorer.architecture import attention as architecture
from explorer.explain.captured.interventions import first_token_position
from explorer.explain.labels import token_formatter
from explorer.explain.notation import format_number, quote_token
from explorer.explain.walkthroughs.walkthrough import Walkthrough, WalkthroughStep
from explorer.state.errors import UserError
from explorer.state.interventions import PositionShift, RopeBaseReplacement
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import _

MAX_FRAMES = 24  # positions shown, evenly spaced


def rotation_walkthrough(trace: Trace, selection: Selection) -> Walkthrough:
    """Return the walkthrough for the pair with the largest contribution to the selected score.

    The query's pair is rotated position by position, then the key's, then both are shown with their angle.

    Raises:
        UserError: the layer has no RoPE.
    """
    if not trace.has_tap("blocks.*.attn.q_rot") or not trace.config.has_rope(selection.layer):
        raise UserError(_("This layer has no RoPE."))
    adds = score_by_pair(trace, selection.layer, selection.head, selection.query, selection.key)
    pair = int(np.abs(adds).argmax())
    angles = rotation_angles(trace, selection.layer)[:, pair].astype(np.float64)
    scale = float(np.broadcast_to(pair_scales(trace, selection.layer), trace.config.d_head // 2)[pair])
    q, k = (
        rotated_pairs(trace, name, selection.layer, selection.head, at)
        for name, at in (("q", selection.query), ("k", selection.key))
    )
    first, changed = first_token_position(trace), _rotation_changes(trace, selection.layer)
    positions = {"q": first + selection.query, "k": first + selection.key}  # where the run counts them as standing
    hands = {"q": (q, selection.query), "k": (k, selection.key)}
    largest = max(float(np.linalg.norm(at[pair])) for pairs in (q, k) for at in (pairs.before, pairs.after)) or 1.0

    def make_hand(name: str, point: np.ndarray) -> dict:
        a, b = (float(value) for value in point)
        return {"name": name, "x": a / largest, "y": b / largest, "text": f"({format_number(a)}, {format_number(b)})"}

    def rotation_frames(name: str) -> list[dict]:
        (pairs, token_index), position = hands[name], positions[name]
        before, angle = pairs.before[pair].astype(np.float64), float(angles[token_index])
        intermediate = [] if changed else [(p, angle * p / position) for p in select_positions(position)[:-1]]
        frames = [(rotate(before * scale, rotation_angle), p, rotation_angle) for p, rotation_angle in intermediate] + [
            (pairs.after[pair], position, angle)
        ]
        return [
            {
                "hands": [make_hand(name, point), make_faint_hand(name, before)],
                "position": p,
                "angle": format_number(rotation_angle),
            }
            for point, p, rotation_angle in frames
        ]

    def make_faint_hand(name: str, point: np.ndarray) -> dict:
        return make_hand(name, point) | {"is_before": True}

    query_token, key_token = (quote_token(trace.tokens[at]) for at in (selection.query, selection.key))
    both_hands = {
        "hands": [make_hand("q", q.after[pair]), make_hand("k", k.after[pair])],
        "angle": format_number(angles[selection.query] - angles[selection.key]),
    }
    segments = [
        WalkthroughStep(
            _("Pair {pair} of the query of {query}: two of its numbers, drawn as the hand of a clock, before its "
              "position is known.", pair=pair, query=query_token),
            "hands", [{"hands": [make_hand("q", q.before[pair])]}],
        ),
        WalkthroughStep(
            _("At position {position} it would be turned, but the rotation is changed in this run: {changes}.",
              position=positions["q"], changes=changed)
            if changed else
            _("Each position turns it on by the same angle, up to position {position}. Its length stays.",
              position=positions["q"]) if scale == 1 else
            _("Each position turns it on by the same angle, up to position {position}. Its length is multiplied by "
              "{scale}.", position=positions["q"], scale=format_number(scale)),
            "hands", rotation_frames("q"),
        ),
        WalkthroughStep(
            _("The same pair of the key of {key}, at position {position}, with the same change.",
              key=key_token, position=positions["k"])
            if changed else
            _("The same pair of the key of {key} is turned to its own position, {position}.",
              key=key_token, position=positions["k"]),
            "hands", rotation_frames("k"),
        ),
        WalkthroughStep(
            _("The score sees both as they are now: this pair adds {adds} to it.", adds=format_number(adds[pair]))
            if changed else
            _("The score sees both turned: this pair adds {adds} to it. If both moved on by the same number of "
              "positions, the angle between them would stay, and so would the score.", adds=format_number(adds[pair])),
            "hands", [both_hands],
        ),
    ]  # fmt: skip
    title = _("How position turns pair {pair}: {query} at {at}, {key} at {other}",
              pair=pair, query=query_token, at=positions["q"], key=key_token, other=positions["k"])  # fmt: skip
    return Walkthrough(title, segments)


def _rotation_changes(trace: Trace, layer: int) -> str:
    """Name the interventions that change a rotation beyond its position and base; "" if there are none."""
    taps = (architecture.angles_tap(trace.config, layer), *(f"blocks.{layer}.attn.{name}_rot" for name in "qk"))
    interventions = [
        intervention
        for intervention in trace.edits
        if not isinstance(intervention, PositionShift | RopeBaseReplacement) and any(map(intervention.affects, taps))
    ]
    return "; ".join(intervention.describe(trace.config, token_formatter(trace)) for intervention in interventions)


def rotate(point: np.ndarray, angle: float) -> np.ndarray:
    """Rotate a point (2,) by an angle in radians."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([point[0] * cos - point[1] * sin, point[0] * sin + point[1] * cos])


def select_positions(last: int) -> list[int]:
    """Return positions from 0 to `last`, at most `MAX_FRAMES` of them."""
    return sorted({round(position) for position in np.linspace(0, last, min(last + 1, MAX_FRAMES))})
