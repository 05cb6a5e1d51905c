"""The instrument: capture, analysis, views and the page that shows them."""

from explorer.capture import capture
from explorer.trace import Trace

__all__ = ["Trace", "capture"]
