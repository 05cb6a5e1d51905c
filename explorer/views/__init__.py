"""The views in tab order and by name: those of the full page and the steps of the simple page."""

from explorer.state.selection import Selection, resolve_tab
from explorer.translations import _, translate
from explorer.views import (
    activations,
    attention,
    compare,
    diagnosis,
    directions,
    experiments,
    feed_forward,
    kv_cache,
    overview,
    patching,
    positions,
    prediction,
    residual,
    simple_attention,
    simple_prediction,
    simple_tokens,
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
SIMPLE = (simple_tokens.VIEW, simple_attention.VIEW, simple_prediction.VIEW)  # the steps of the simple page
VIEWS = FULL + SIMPLE
DIAGNOSIS_VIEWS = (diagnosis.VIEW,)  # if the app was started with a module of the user's own
VIEW_BY_NAME = {view.name: view for view in VIEWS + DIAGNOSIS_VIEWS}


def unknown_view_message(name: str | None) -> str:
    """Return a message about a view name that no tab has or had; "" for a known name."""
    if not name or resolve_tab(name):
        return ""
    return _(
        "There is no tab {name!r}; the tabs are {titles}: {shown} is shown.",
        name=name[:80],
        titles=", ".join(translate(view.title) for view in FULL),
        shown=translate(VIEW_BY_NAME[Selection.view].title),
    )
