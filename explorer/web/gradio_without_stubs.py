"""Imports Gradio without the stubs for editors that it parses, renders and writes beside every component's source: half
of the time that its import takes, and of no use to who starts a server."""

import inspect
from unittest import mock

_getfile = inspect.getfile


def _no_file_of_a_component(of: object) -> str:
    """A class that no file holds gets no stub."""
    if isinstance(of, type) and of.__module__.startswith("gradio."):
        raise OSError(f"{of} is asked for a stub")
    return _getfile(of)


with mock.patch.object(inspect, "getfile", _no_file_of_a_component):
    import gradio.component_meta

gradio.component_meta.create_or_modify_pyi = lambda *_: None  # nor for the page's own widgets
