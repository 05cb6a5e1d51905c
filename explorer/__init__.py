"""The instrument: capture, analysis, views and the page that shows them."""

from explorer.own_module import diagnose, from_module, read_vocabulary, trace_module
from explorer.state.interventions import Edit
from explorer.tracing.capture import capture
from explorer.tracing.patching import activation_patching, attribution_patching, path_patching
from explorer.tracing.trace import Trace

__all__ = [
    "Edit",
    "Trace",
    "activation_patching",
    "attribution_patching",
    "capture",
    "diagnose",
    "from_module",
    "path_patching",
    "read_vocabulary",
    "trace_module",
]
