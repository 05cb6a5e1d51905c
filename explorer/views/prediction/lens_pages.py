"""Pages of positions for the logit lens of a long run."""

from explorer.analysis.logit_lens import depth_names
from explorer.tracing.trace import Trace

MAX_POSITIONS = 16  # at once, so that every cell has room for its token
MIN_POSITIONS = 4  # however large the model is
MAX_CLICK_MACS = 4e9  # of numbers, that a click has time for


def visible_page(trace: Trace, query: int) -> range:
    """Return the page of positions that contains the query; the last page is full. A click on a cell keeps the page."""
    size = MIN_POSITIONS
    while size < MAX_POSITIONS and 2 * size * lens_macs_per_position(trace) <= MAX_CLICK_MACS:
        size *= 2
    start = max(0, min(query // size * size, len(trace) - size))
    return range(start, min(len(trace), start + size))


def lens_macs_per_position(trace: Trace) -> int:
    """Return the multiply-accumulates of the lens for one position."""
    return len(depth_names(trace)) * trace.config.vocab_size * trace.config.d_model
