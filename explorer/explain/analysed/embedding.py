"""Numbers worked out from embeddings: cosines of tokens, and where the stream lies along its main directions."""

from explorer.analysis.embedding import embedding_parts, nearest_tokens, principal_components, stream_at
from explorer.architecture import embedding
from explorer.explain.analysed.arithmetic import cosine, product
from explorer.explain.captured.embedding import TABLE
from explorer.explain.derivation import Derivation
from explorer.explain.notation import factor, number, quoted
from explorer.explain.place import at, of_id
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import Input, Working, take
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace

EMBEDDING = "explorer/analysis/embedding.py"
ROW = N_("row of the token’s id, as it was learned")
SCALED_ROW = N_("row of the token’s id · {factor}, as it was learned")


def table_row(trace: Trace, query: int, dim: int) -> Derivation:
    """A number of the token's own row of the table, as it enters the sum."""
    token_id, config = trace.token_ids[query], trace.config
    parts = embedding_parts(trace, query)
    drawn = element(parts.row * parts.scale, dim)
    row, read = take(trace, TABLE, token_id, dim)
    value, scaled = float(row) * config.embedding_scale, config.embedding_scale != 1
    times = f"{factor(row)} · {embedding.factor_in_numbers(config)} = " * scaled
    symbols = look_up(SCALED_ROW, factor=embedding.factor(config)) if scaled else look_up(ROW)
    return Derivation(
        _("token {token_id}’s own vector[{dim}]", token_id=token_id, dim=dim),
        at(trace, query),
        drawn,
        Working(symbols, lambda: f"{times}{number(value)}", value, (read,)),
        Source(EMBEDDING, 'row = trace.weights["token_embedding.weight"][trace.token_ids[query]]'),
    )


def similar(trace: Trace, query: int, place: int, most: int) -> Derivation:
    """The cosine of the token's row of the table with that of one of the nearest tokens."""
    ids, cosines = nearest_tokens(trace, trace.token_ids[query], most)
    drawn, token_id = element(cosines, place), int(ids[place])
    return Derivation(
        _("cosine of two tokens’ vectors"),
        _("{one} and {other}", one=quoted(trace.tokens[query]), other=of_id(trace, token_id)),
        drawn,
        cosine(take(trace, TABLE, trace.token_ids[query]), take(trace, TABLE, token_id)),
        Source(EMBEDDING, "cosines = np.divide(products, scale"),
    )


def component(trace: Trace, depth: int, position: int, which: int, first: int = 0) -> Derivation:
    """How far a token's vector lies along one of the directions in which all differ most.

    Args:
        which: of the directions.
        first: the first token that counts.
    """
    vectors = stream_at(trace, depth)[first:].astype(float)
    found = principal_components(stream_at(trace, depth)[first:])
    drawn = element(found.points, position - first, which)
    centred = vectors[position - first] - vectors.mean(0)
    name = f"blocks.{depth}.resid_pre" if depth < trace.config.num_layers else _("the stream after the last block")
    inputs = (Input(name, (slice(first, None),), vectors.shape),)
    return Derivation(
        _("component {which}", which=which + 1),
        _("{token} at depth {depth}", token=at(trace, position), depth=depth),
        drawn,
        product(_("(x − mean x of all tokens) · direction"), centred, found.directions[which], inputs),
        Source(EMBEDDING, "return PrincipalComponents(centred @ kept.T"),
    )
