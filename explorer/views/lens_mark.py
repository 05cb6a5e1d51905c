"""What vouches for what the logit lens reads."""

from explorer.architecture.stream import depth_places
from explorer.explain.analysed.lens import last_depth
from explorer.language import N_
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.checks import Mark, worked_out


def mark_of_lens(trace: Trace, selection: Selection) -> Mark:
    """It reads every depth as the model reads the last, which can be compared."""
    names = ("blocks.0.resid_pre", *(f"blocks.*.{name}" for name in depth_places(trace.config)))
    against = N_("at the last depth against the captured logits"), lambda trace, s: last_depth(trace, s.query)
    return worked_out(*names, "logits", against=against)(trace, selection)
