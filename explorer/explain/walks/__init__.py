"""A computation gone through bit by bit: short segments, each with a sentence and a drawing of numbers of the run."""

from explorer.explain.walks.attention import attention
from explorer.explain.walks.layers import layers
from explorer.explain.walks.rotation import rotation
from explorer.explain.walks.walk import Walk
from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace

WALKS = {"attention": attention, "rotation": rotation, "layers": layers}


def walk_of(name: str, trace: Trace, selection: Selection) -> Walk:
    """A walk by its name, at the chosen head and tokens.

    Raises:
        UserError: there is no such walk, or this run lacks what it goes through.
    """
    if not isinstance(name, str) or name not in WALKS:
        raise UserError(_("there is no walk {name!r:.40}", name=name))
    return WALKS[name](trace, selection.within(trace))
