"""How often a size of value occurs."""

from explorer.analysis.activations import histogram_of, matrix_at
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.place import at
from explorer.explain.point import element
from explorer.explain.source import Source
from explorer.explain.working import Input, Working
from explorer.language import _
from explorer.tracing.trace import Trace


def share(trace: Trace, tap: str, head: int, query: int | None, place: int) -> Derivation:
    """Of the values within one bin of the histogram, over all tokens, or at the query."""
    values = matrix_at(trace, tap, head).astype(float)
    edges, shares = histogram_of(values, values if query is None else values[query])
    drawn, some = element(shares, place), (values if query is None else values[query]).ravel()
    last = place == len(shares) - 1
    within = (some >= edges[place]) & ((some <= edges[place + 1]) if last else (some < edges[place + 1]))
    value = float(within.sum()) / len(some)
    working = Working(
        _("how many values lie there / how many there are"),
        lambda: f"{int(within.sum()):,} / {len(some):,} = {number(value)}",
        value,
        (Input(tap, (), trace[tap].shape),),
    )
    return Derivation(
        _("share of {tap} from {low} to {high}", tap=tap, low=number(edges[place]), high=number(edges[place + 1])),
        _("over all tokens") if query is None else at(trace, query),
        drawn,
        working,
        Source("explorer/analysis/activations.py", "return edges, counts / counts.sum()"),
    )
