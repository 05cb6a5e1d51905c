"""Activation patching, attribution patching and path patching between two runs."""

from explorer.tracing.patching.patching_methods import activation_patching, attribution_patching, path_patching

__all__ = ["activation_patching", "attribution_patching", "path_patching"]
