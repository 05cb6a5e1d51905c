"""The views, in tab order."""

from explorer.views import (
    activations,
    attention,
    experiments,
    feed_forward,
    kv_cache,
    overview,
    prediction,
    residual,
    rope,
    tokens,
)

VIEWS = (
    overview.VIEW,
    tokens.VIEW,
    attention.VIEW,
    rope.VIEW,
    kv_cache.VIEW,
    feed_forward.VIEW,
    residual.VIEW,
    prediction.VIEW,
    activations.VIEW,
    experiments.VIEW,
)
