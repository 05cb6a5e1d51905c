"""Numbers worked out from the vectors that are added for positions."""

from explorer.analysis import positions
from explorer.architecture.embedding import factor
from explorer.explain.analysed import arithmetic
from explorer.explain.captured.embedding import TABLE
from explorer.explain.derivation import Derivation
from explorer.explain.place import at
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import Working, take
from explorer.language import N_, _, look_up, ngettext
from explorer.tracing.trace import Trace

POSITIONS, NAME = "explorer/analysis/positions.py", "position_embed"
LENGTHS = {
    "token": N_("length of the token vector"),
    "position": N_("length of the position vector"),
    "sum": N_("length of the sum"),
}


def cosine(trace: Trace, query: int, key: int) -> Derivation:
    """Of what is added at two positions."""
    drawn = element(positions.cosines(trace), query, key)
    return Derivation(
        _("cosine of the vectors added at positions {query} and {key}", query=query, key=key),
        _("{one} and {other}", one=at(trace, query), other=at(trace, key)),
        drawn,
        of_two(trace, query, key),
        Source(POSITIONS, "return units @ units.T"),
    )


def of_two(trace: Trace, query: int, key: int) -> Working:
    return arithmetic.cosine(*(take(trace, NAME, position) for position in (query, key)), ("p", "p′"))


def mean_cosine(trace: Trace, distance: int) -> Derivation:
    """Of all pairs of positions as far apart."""
    drawn = element(positions.by_distance(trace).mean, distance)
    pairs = [of_two(trace, key + distance, key).value for key in range(len(trace) - distance)]
    place = ngettext(
        "{count} pair {distance} apart", "all {count} pairs {distance} apart", len(pairs), distance=distance
    )
    return Derivation(
        _("mean cosine of the vectors added at two positions"),
        place,
        drawn,
        arithmetic.mean(_("mean of p·p′ / (‖p‖ ‖p′‖)"), pairs, (take(trace, NAME)[1],)),
        Source(POSITIONS, "return ByDistance("),
    )


def length(trace: Trace, part: str, position: int) -> Derivation:
    """‖x‖₂ of one of `PARTS` at a position."""
    drawn, symbols = element(positions.lengths(trace), positions.PARTS.index(part), position), "‖x‖₂ = √Σx²"
    if part == "token":
        x, read = take(trace, TABLE, trace.token_ids[position])
        x = x * trace.config.embedding_scale
        if times := factor(trace.config):
            symbols = _("‖x‖₂ = √Σx², x = row · {factor}", factor=times)
    else:
        x, read = take(trace, {"position": NAME, "sum": "embed"}[part], position)
    return Derivation(
        look_up(LENGTHS[part]),
        at(trace, position),
        drawn,
        arithmetic.length(x, (read,), symbols),
        Source(POSITIONS, "return np.stack([np.linalg.norm(x, axis=-1)"),
    )
