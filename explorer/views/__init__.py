"""The views, in tab order, and by their names: those of the full page, and the steps of the simple one."""

from explorer.language import _, look_up
from explorer.state.selection import Selection, tab_named
from explorer.views import (
    activations,
    attention,
    compare,
    directions,
    experiments,
    feed_forward,
    guesses,
    kv_cache,
    looks,
    overview,
    own_module,
    patching,
    pieces,
    positions,
    prediction,
    residual,
    tokens,
    training,
)

FULL = (
    overview.VIEW,
    tokens.VIEW,
    attention.VIEW,
    positions.VIEW,
    kv_cache.VIEW,
    feed_forward.VIEW,
    residual.VIEW,
    prediction.VIEW,
    activations.VIEW,
    experiments.VIEW,
    directions.VIEW,
    compare.VIEW,
    patching.VIEW,
    training.VIEW,
)
SIMPLE = (pieces.VIEW, looks.VIEW, guesses.VIEW)  # one connected story in everyday words
VIEWS = FULL + SIMPLE
OWN = (own_module.VIEW,)  # where the app was started with somebody's own module
VIEW_NAMED = {view.name: view for view in VIEWS + OWN}


def unknown_view(name: str | None) -> str:
    """A sentence about a name that no tab has or had; "" for one that has."""
    if not name or tab_named(name):
        return ""
    return _(
        "There is no tab {name!r}; the tabs are {titles}: {shown} is shown.",
        name=name[:80],
        titles=", ".join(look_up(view.title) for view in FULL),
        shown=look_up(VIEW_NAMED[Selection.view].title),
    )
