"""The views, in tab order, and by their names."""

from explorer.state.selection import Selection
from explorer.views import (
    activations,
    attention,
    experiments,
    feed_forward,
    kv_cache,
    overview,
    positions,
    prediction,
    residual,
    tokens,
)
from explorer.views.view import View

VIEWS = (
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
)
FORMERLY = {"rope": positions.VIEW.name}  # names in addresses that people saved


def view_named(name: str) -> View:
    """The view of that name or former name, or else the one that is open at first."""
    views = {view.name: view for view in VIEWS}
    return views.get(FORMERLY.get(name, name), views[Selection.view])


def unknown_view(name: str | None) -> str:
    """A sentence about a name that no view has or had; "" for one that has."""
    view = view_named(name)
    if not name or FORMERLY.get(name, name) == view.name:
        return ""
    titles = ", ".join(view.title for view in VIEWS)
    return f"There is no tab {name[:80]!r}; the tabs are {titles}: {view.title} is shown."
