"""Derivations of embeddings: cosines of tokens, and principal components of the stream."""

from explorer.analysis.embedding import embedding_parts, nearest_tokens, principal_components, residual_at_depth
from explorer.architecture import residual_stream
from explorer.explain.calculation import Calculation, Input, read_input
from explorer.explain.captured.embedding import TABLE
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Derivation
from explorer.explain.derived.arithmetic import cosine, dot_product
from explorer.explain.labels import format_token_id, format_token_position
from explorer.explain.notation import format_factor, format_number, quote_token
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate

EMBEDDING = "explorer/analysis/embedding.py"
ROW = N_("row of the token’s id, as it was learned")
SCALED_ROW = N_("row of the token’s id · {factor}, as it was learned")


def embedding_row_element(trace: Trace, query: int, dim: int) -> Derivation:
    """Derive an element of the token's scaled row of the embedding table."""
    token_id, config = trace.token_ids[query], trace.config
    terms = embedding_parts(trace, query)
    displayed_value = get_element(terms.row * terms.scale, dim)
    row, read = read_input(trace, TABLE, token_id, dim)
    value, scaled = float(row) * config.embedding_scale, config.embedding_scale != 1
    scale_text = f"{format_factor(row)} · {residual_stream.embedding_scale_in_numbers(config)} = " * scaled
    symbols = (
        translate(SCALED_ROW, factor=residual_stream.embedding_scale_formula(config)) if scaled else translate(ROW)
    )
    return Derivation(
        _("token {token_id}’s own vector[{dim}]", token_id=token_id, dim=dim),
        format_token_position(trace, query),
        displayed_value,
        Calculation(symbols, lambda: f"{scale_text}{format_number(value)}", value, (read,)),
        SourceLine(EMBEDDING, 'row = trace.weights["token_embedding.weight"][trace.token_ids[query]]'),
    )


def nearest_token_cosine(trace: Trace, query: int, index: int, max_count: int) -> Derivation:
    """Derive the cosine of the token's embedding with that of one of the nearest tokens."""
    ids, cosines = nearest_tokens(trace, trace.token_ids[query], max_count)
    displayed_value, token_id = get_element(cosines, index), int(ids[index])
    return Derivation(
        _("cosine of two tokens’ vectors"),
        _("{one} and {other}", one=quote_token(trace.tokens[query]), other=format_token_id(trace, token_id)),
        displayed_value,
        cosine(read_input(trace, TABLE, trace.token_ids[query]), read_input(trace, TABLE, token_id)),
        SourceLine(EMBEDDING, "cosines = np.divide(products, scale"),
    )


def principal_component_coordinate(
    trace: Trace, depth: int, position: int, component: int, first: int = 0
) -> Derivation:
    """Derive the coordinate of a token's vector along a principal component.

    Args:
        component: index of the principal component.
        first: the first token that is included.
    """
    vectors = residual_at_depth(trace, depth)[first:].astype(float)
    components = principal_components(residual_at_depth(trace, depth)[first:])
    displayed_value = get_element(components.points, position - first, component)
    centred = vectors[position - first] - vectors.mean(0)
    name = f"blocks.{depth}.resid_pre" if depth < trace.config.num_layers else _("the stream after the last block")
    inputs = (Input(name, (slice(first, None),), vectors.shape),)
    return Derivation(
        _("component {which}", which=component + 1),
        _("{token} at depth {depth}", token=format_token_position(trace, position), depth=depth),
        displayed_value,
        dot_product(_("(x − mean x of all tokens) · direction"), centred, components.directions[component], inputs),
        SourceLine(EMBEDDING, "return PrincipalComponents(centred @ components.T"),
    )
