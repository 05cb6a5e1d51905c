"""One pair of dimensions of a query and of a key, turned by their positions."""

import numpy as np

from explorer.analysis.rope import angles_of, rotated_pairs, scales, score_by_pair
from explorer.architecture import attention as architecture
from explorer.explain.captured.edits import first_position
from explorer.explain.notation import number, quoted
from explorer.explain.place import as_text
from explorer.explain.walks.walk import Segment, Walk
from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.interventions import Base, Shift
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace

MOST_TURNS = 24  # positions on the way, of a far one some


def rotation(trace: Trace, s: Selection) -> Walk:
    """The pair that adds most to the chosen score: the query's hand turned position by position, then the key's, then
    both, whose angle is what the score sees.

    Raises:
        UserError: the model turns nothing.
    """
    if not trace.has("blocks.*.attn.q_rot") or not trace.config.rotates(s.layer):
        raise UserError(_("This layer turns no queries and keys."))
    adds = score_by_pair(trace, s.layer, s.head, s.query, s.key)
    pair = int(np.abs(adds).argmax())
    angles = angles_of(trace, s.layer)[:, pair].astype(np.float64)
    scale = float(np.broadcast_to(scales(trace, s.layer), trace.config.d_head // 2)[pair])
    q, k = (rotated_pairs(trace, name, s.layer, s.head, at) for name, at in (("q", s.query), ("k", s.key)))
    first, changed = first_position(trace), _changes_of_rotation(trace, s.layer)
    places = {"q": first + s.query, "k": first + s.key}  # where the run counts them as standing
    hands = {"q": (q, s.query), "k": (k, s.key)}
    largest = max(float(np.linalg.norm(at[pair])) for found in (q, k) for at in (found.before, found.after)) or 1.0

    def hand(name: str, point: np.ndarray) -> dict:
        a, b = (float(value) for value in point)
        return {"name": name, "x": a / largest, "y": b / largest, "text": f"({number(a)}, {number(b)})"}

    def turning(name: str) -> list[dict]:
        (found, at), place = hands[name], places[name]
        before, angle = found.before[pair].astype(np.float64), float(angles[at])
        on_the_way = [] if changed else [(p, angle * p / place) for p in positions_to(place)[:-1]]
        frames = [(turned(before * scale, turn), p, turn) for p, turn in on_the_way] + [
            (found.after[pair], place, angle)
        ]
        return [
            {"hands": [hand(name, point), faint(name, before)], "position": p, "angle": number(turn)}
            for point, p, turn in frames
        ]

    def faint(name: str, point: np.ndarray) -> dict:
        return hand(name, point) | {"is_before": True}

    asking, asked = (quoted(trace.tokens[at]) for at in (s.query, s.key))
    both = {
        "hands": [hand("q", q.after[pair]), hand("k", k.after[pair])],
        "angle": number(angles[s.query] - angles[s.key]),
    }
    segments = [
        Segment(
            _("Pair {pair} of the query of {query}: two of its numbers, drawn as the hand of a clock, before its "
              "position is known.", pair=pair, query=asking),
            "hands", [{"hands": [hand("q", q.before[pair])]}],
        ),
        Segment(
            _("At position {position} it would be turned, but the rotation is changed in this run: {changes}.",
              position=places["q"], changes=changed)
            if changed else
            _("Each position turns it on by the same angle, up to position {position}. Its length stays.",
              position=places["q"]) if scale == 1 else
            _("Each position turns it on by the same angle, up to position {position}. Its length is multiplied by "
              "{scale}.", position=places["q"], scale=number(scale)),
            "hands", turning("q"),
        ),
        Segment(
            _("The same pair of the key of {key}, at position {position}, with the same change.",
              key=asked, position=places["k"])
            if changed else
            _("The same pair of the key of {key} is turned to its own position, {position}.",
              key=asked, position=places["k"]),
            "hands", turning("k"),
        ),
        Segment(
            _("The score sees both as they are now: this pair adds {adds} to it.", adds=number(adds[pair]))
            if changed else
            _("The score sees both turned: this pair adds {adds} to it. If both moved on by the same number of "
              "positions, the angle between them would stay, and so would the score.", adds=number(adds[pair])),
            "hands", [both],
        ),
    ]  # fmt: skip
    title = _("How position turns pair {pair}: {query} at {at}, {key} at {other}",
              pair=pair, query=asking, at=places["q"], key=asked, other=places["k"])  # fmt: skip
    return Walk(title, segments)


def _changes_of_rotation(trace: Trace, layer: int) -> str:
    """Name the changes after which a rotation is no longer the one of the token's position; "" where there are none."""
    taps = (architecture.angles_of(trace.config, layer), *(f"blocks.{layer}.attn.{name}_rot" for name in "qk"))
    edits = [edit for edit in trace.edits if not isinstance(edit, Shift | Base) and any(map(edit.reaches, taps))]
    return "; ".join(edit.words(trace.config, as_text(trace)) for edit in edits)


def turned(point: np.ndarray, angle: float) -> np.ndarray:
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([point[0] * cos - point[1] * sin, point[0] * sin + point[1] * cos])


def positions_to(last: int) -> list[int]:
    """From 0 to a position, all of them or as many as are shown."""
    return sorted({round(at) for at in np.linspace(0, last, min(last + 1, MOST_TURNS))})
