"""The views, in tab order."""

from explorer.views import activations, attention, rope

VIEWS = (attention.VIEW, rope.VIEW, activations.VIEW)
