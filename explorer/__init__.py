"""The web app: tracing, analysis, views and the page."""

from explorer.diagnosis import diagnose, from_module, read_vocabulary
from explorer.diagnosis import run_module as trace_module
from explorer.interventions import Edit, Intervention, make_intervention
from explorer.tracing.capture import capture
from explorer.tracing.patching import activation_patching, attribution_patching, path_patching
from explorer.tracing.trace import Trace

__all__ = [
    "Edit",
    "Intervention",
    "Trace",
    "activation_patching",
    "attribution_patching",
    "capture",
    "diagnose",
    "from_module",
    "make_intervention",
    "path_patching",
    "read_vocabulary",
    "trace_module",
]
