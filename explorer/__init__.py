"""The instrument: capture, analysis, views and the page that shows them."""

from explorer.capture import capture
from explorer.edits import Edit
from explorer.trace import Trace

__all__ = ["Edit", "Trace", "capture"]
