"""Activation patching, attribution patching and path patching between two runs."""

from explorer.tracing.patching.activation_patching import activation_patching
from explorer.tracing.patching.attribution_patching import attribution_patching
from explorer.tracing.patching.path_patching import path_patching

__all__ = ["activation_patching", "attribution_patching", "path_patching"]
