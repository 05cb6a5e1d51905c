"""Import of Gradio without generating stub files for editors, which takes half of the time of its import."""

import inspect
from unittest import mock

_getfile = inspect.getfile


def _no_file_of_a_component(of: object) -> str:
    """Return the file of an object; raise OSError for Gradio's classes, so that no stub is generated for them."""
    if isinstance(of, type) and of.__module__.startswith("gradio."):
        raise OSError(f"{of} is asked for a stub")
    return _getfile(of)


with mock.patch.object(inspect, "getfile", _no_file_of_a_component):
    import gradio.component_meta

gradio.component_meta.create_or_modify_pyi = lambda *_: None  # nor for the page's own widgets
