"""How often a size of value occurs."""

from explorer.analysis.activations import histogram_of, matrix_at
from explorer.explain.captured.inspect import at
from explorer.explain.inspection import Inspection
from explorer.explain.notation import number
from explorer.explain.source import Source
from explorer.explain.working import Input
from explorer.state.errors import NoSuchPoint
from explorer.tracing.trace import Trace


def share(trace: Trace, tap: str, head: int, query: int | None, place: int) -> Inspection:
    """Of the values within one bin of the histogram, over all tokens, or at the query."""
    values = matrix_at(trace, tap, head).astype(float)
    edges, shares = histogram_of(values, values if query is None else values[query])
    if not 0 <= place < len(shares):
        raise NoSuchPoint(f"the histogram has no bin {place}")
    some = (values if query is None else values[query]).ravel()
    last = place == len(shares) - 1
    within = (some >= edges[place]) & ((some <= edges[place + 1]) if last else (some < edges[place + 1]))
    again = float(within.sum()) / len(some)
    return Inspection(
        name=f"share of {tap} from {number(edges[place])} to {number(edges[place + 1])}",
        place="over all tokens" if query is None else at(trace, query),
        value=float(shares[place]),
        kind="drawn",
        symbols="how many values lie there / how many there are",
        numbers=f"{int(within.sum()):,} / {len(some):,} = {number(again)}",
        inputs=(Input(tap, (), trace[tap].shape),),
        recomputed=again,
        source=Source("explorer/analysis/activations.py", "return edges, counts / counts.sum()"),
    )
