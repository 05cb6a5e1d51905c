"""Derivations of position embeddings."""

from explorer.analysis import position_embeddings
from explorer.architecture.residual_stream import embedding_scale_formula
from explorer.explain.calculation import Calculation, read_input
from explorer.explain.captured.embedding import TABLE
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Derivation
from explorer.explain.derived import arithmetic
from explorer.explain.labels import format_token_position
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate

POSITIONS, NAME = "explorer/analysis/position_embeddings.py", "position_embed"
NORM_NAMES = {
    "token": N_("length of the token vector"),
    "position": N_("length of the position vector"),
    "sum": N_("length of the sum"),
}


def cosine_between_positions(trace: Trace, query: int, key: int) -> Derivation:
    """Derive the cosine of the position embeddings of two positions."""
    displayed_value = get_element(position_embeddings.position_cosines(trace), query, key)
    return Derivation(
        _("cosine of the vectors added at positions {query} and {key}", query=query, key=key),
        _("{one} and {other}", one=format_token_position(trace, query), other=format_token_position(trace, key)),
        displayed_value,
        calculate_position_cosine(trace, query, key),
        SourceLine(POSITIONS, "return units @ units.T"),
    )


def calculate_position_cosine(trace: Trace, query: int, key: int) -> Calculation:
    """Calculate the cosine of the position vectors of a query and a key."""
    return arithmetic.cosine(*(read_input(trace, NAME, position) for position in (query, key)), ("p", "p′"))


def mean_cosine(trace: Trace, distance: int) -> Derivation:
    """Derive the mean cosine over all pairs of positions at a distance."""
    displayed_value = get_element(position_embeddings.cosines_by_distance(trace).mean, distance)
    pairs = [calculate_position_cosine(trace, key + distance, key).value for key in range(len(trace) - distance)]
    location = ngettext(
        "{count} pair {distance} apart", "all {count} pairs {distance} apart", len(pairs), distance=distance
    )
    return Derivation(
        _("mean cosine of the vectors added at two positions"),
        location,
        displayed_value,
        arithmetic.mean(_("mean of p·p′ / (‖p‖ ‖p′‖)"), pairs, (read_input(trace, NAME)[1],)),
        SourceLine(POSITIONS, "return CosineByDistance("),
    )


def position_norm(trace: Trace, kind: str, position: int) -> Derivation:
    """Derive ‖x‖₂ of one of `VECTOR_KINDS` at a position."""
    displayed_value, symbols = (
        get_element(
            position_embeddings.token_and_position_norms(trace), position_embeddings.VECTOR_KINDS.index(kind), position
        ),
        "‖x‖₂ = √Σx²",
    )
    if kind == "token":
        x, read = read_input(trace, TABLE, trace.token_ids[position])
        x = x * trace.config.embedding_scale
        if scale_text := embedding_scale_formula(trace.config):
            symbols = _("‖x‖₂ = √Σx², x = row · {factor}", factor=scale_text)
    else:
        x, read = read_input(trace, {"position": NAME, "sum": "embed"}[kind], position)
    return Derivation(
        translate(NORM_NAMES[kind]),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.norm(x, (read,), symbols),
        SourceLine(POSITIONS, "return np.stack([np.linalg.norm(x, axis=-1)"),
    )
