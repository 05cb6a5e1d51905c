"""Numbers worked out from embeddings: cosines of tokens, and where the stream lies along its main directions."""

import math

from explorer.analysis.embedding import nearest_tokens, principal_components, stream_at
from explorer.explain.captured.inspect import at
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import number, quoted
from explorer.explain.source import Source
from explorer.explain.working import Input, factor, products, take
from explorer.tracing.trace import Trace

EMBEDDING, TABLE = "explorer/analysis/embedding.py", "token_embedding.weight"


def table_row(trace: Trace, query: int, dim: int) -> Inspection:
    """A number of the token's own row of the table, as it enters the sum."""
    token_id = trace.token_ids[query]
    row, read = take(trace, TABLE, token_id, dim)
    scaled = trace.config.scale_embeddings
    again = float(row) * (math.sqrt(trace.config.d_model) if scaled else 1.0)
    times = f"{factor(row)} · √{trace.config.d_model} = " * scaled
    return Inspection(
        name=f"token {token_id}’s own vector[{dim}]",
        place=at(trace, query),
        value=again,
        kind="drawn",
        symbols=f"row of the token’s id{' · √D' * scaled}, as it was learned",
        numbers=f"{times}{number(again)}",
        inputs=(read,),
        recomputed=again,
        source=Source(EMBEDDING, 'row = trace.weights["token_embedding.weight"][trace.token_ids[query]]'),
    )


def similar(trace: Trace, query: int, place: int, most: int) -> Inspection:
    """The cosine of the token's row of the table with that of one of the nearest tokens."""
    ids, cosines = nearest_tokens(trace, trace.token_ids[query], most)
    value, token_id = element(cosines, place), int(ids[place])
    (own, from_own), (other, from_other) = (take(trace, TABLE, i) for i in (trace.token_ids[query], token_id))
    lengths = [math.sqrt(math.fsum(x * x)) for x in (own, other)]
    scale = lengths[0] * lengths[1]
    again = float(own @ other) / scale if scale else 0.0
    return Inspection(
        name="cosine of two tokens’ vectors",
        place=f"{quoted(trace.tokens[query])} and {quoted(trace.vocabulary[token_id])} (id {token_id})",
        value=value,
        kind="drawn",
        symbols="cosine = a·b / (‖a‖ ‖b‖)",
        numbers=f"cosine = {products(own, other)} / ({number(lengths[0])} · {number(lengths[1])}) = {number(again)}",
        inputs=(from_own, from_other),
        recomputed=again,
        source=Source(EMBEDDING, "cosines = np.divide(products, scale"),
    )


def component(trace: Trace, depth: int, position: int, which: int, first: int = 0) -> Inspection:
    """How far a token's vector lies along one of the directions in which all differ most.

    Args:
        which: of the directions.
        first: the first token that counts.
    """
    vectors = stream_at(trace, depth)[first:].astype(float)
    found = principal_components(stream_at(trace, depth)[first:])
    value, direction = element(found.points, position - first, which), found.directions[which]
    centred = vectors[position - first] - vectors.mean(0)
    again = float(centred @ direction)
    name = f"blocks.{depth}.resid_pre" if depth < trace.config.num_layers else "the stream after the last block"
    return Inspection(
        name=f"component {which + 1}",
        place=f"{at(trace, position)} at depth {depth}",
        value=value,
        kind="drawn",
        symbols="(x − mean x of all tokens) · direction",
        numbers=f"{products(centred, direction)} = {number(again)}",
        inputs=(Input(name, (slice(first, None),), vectors.shape),),
        recomputed=again,
        source=Source(EMBEDDING, "return PrincipalComponents(centred @ kept.T"),
    )
