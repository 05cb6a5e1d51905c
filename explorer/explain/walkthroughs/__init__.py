"""Walkthroughs: a computation step by step, each step with a sentence and a drawing of the run's numbers."""

from explorer.explain.walkthroughs.attention import attention_walkthrough
from explorer.explain.walkthroughs.layers import layers_walkthrough
from explorer.explain.walkthroughs.rotation import rotation_walkthrough
from explorer.explain.walkthroughs.walkthrough import Walkthrough
from explorer.state.errors import UserError
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import _

WALKTHROUGHS = {"attention": attention_walkthrough, "rotation": rotation_walkthrough, "layers": layers_walkthrough}


def get_walkthrough(name: str, trace: Trace, selection: Selection) -> Walkthrough:
    """Return a walkthrough by its name, at the selected head and tokens.

    Raises:
        UserError: there is no such walkthrough, or this run lacks the values that it needs.
    """
    if not isinstance(name, str) or name not in WALKTHROUGHS:
        raise UserError(_("there is no walk {name!r:.40}", name=name))
    return WALKTHROUGHS[name](trace, selection.clamp_to_trace(trace))
