"""The views, in tab order."""

from explorer.views import activations, attention, feed_forward, overview, prediction, residual, rope, tokens

VIEWS = (
    overview.VIEW,
    tokens.VIEW,
    attention.VIEW,
    rope.VIEW,
    feed_forward.VIEW,
    residual.VIEW,
    prediction.VIEW,
    activations.VIEW,
)
