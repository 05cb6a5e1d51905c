"""Which positions of a long run the logit lens reads."""

from explorer.analysis.lens import depths
from explorer.tracing.trace import Trace

MOST_POSITIONS = 16  # at once, so that every cell has room for its token
LEAST_POSITIONS = 4  # however large the model is
MOST_PRODUCTS = 4e9  # of numbers, that a click has time for


def page_of(trace: Trace, query: int) -> range:
    """The positions that a long run is shown in pages of, so that a click turns no page; the last is full."""
    size = LEAST_POSITIONS
    while size < MOST_POSITIONS and 2 * size * products_of(trace) <= MOST_PRODUCTS:
        size *= 2
    start = max(0, min(query // size * size, len(trace) - size))
    return range(start, min(len(trace), start + size))


def products_of(trace: Trace) -> int:
    """Of numbers, that the lens takes for one position."""
    return len(depths(trace)) * trace.config.vocab_size * trace.config.d_model
