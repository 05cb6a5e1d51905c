"""Telling the visitor of an event what went wrong."""

import html
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps

import gradio as gr

from explorer.web.errors import VISITORS, told


def warn(error: Exception):
    """Show an error's sentence as text; Gradio would read it as HTML."""
    gr.Warning(html.escape(told(error)))


def telling(handler: Callable) -> Callable:
    """The handler of an event with what it raises told: the visitor's mistakes as warnings, ours as errors. It changes
    nothing on the page then, or nothing more."""

    @wraps(handler)
    def function(*args, **kwargs):
        with _toasts():
            return handler(*args, **kwargs)
        return {}

    @wraps(handler)
    def generator(*args, **kwargs):
        with _toasts():
            yield from handler(*args, **kwargs)

    return generator if inspect.isgeneratorfunction(handler) else function


@contextmanager
def _toasts() -> Iterator[None]:
    try:
        yield
    except VISITORS as error:
        warn(error)
    except Exception as error:
        raise gr.Error(html.escape(told(error)), print_exception=False) from error
