"""The instrument: capture, analysis, views and the page that shows them."""

from explorer.state.interventions import Edit
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace

__all__ = ["Edit", "Trace", "capture"]
