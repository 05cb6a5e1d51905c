"""Verification of the logit lens."""

from explorer.architecture.residual_stream import block_lens_points
from explorer.explain.derived.logit_lens import check_last_depth
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_
from explorer.views.verification import Verification, verify_derived


def verify_lens(trace: Trace, selection: Selection) -> Verification:
    """Verify the values that the lens reads, and the lens itself at the last depth against the captured logits.

    All depths are read in the same way; only the last can be compared.
    """
    names = ("blocks.0.resid_pre", *(f"blocks.*.{name}" for name in block_lens_points(trace.config)))
    comparison = N_("at the last depth against the captured logits"), lambda trace, s: check_last_depth(trace, s.query)
    return verify_derived(*names, "logits", against=comparison)(trace, selection)
