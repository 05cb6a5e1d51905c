"""The views, in tab order."""

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
