"""Telling the visitor of an event what went wrong."""

import html
import inspect
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps

import gradio as gr

from explorer.language import speaking
from explorer.tracing.work import unbounded
from explorer.web.errors import VISITORS, told
from explorer.web.http.turns import in_turn
from explorer.web.visitors_language import of_state


def warn(error: Exception):
    """Show an error's sentence as text; Gradio would read it as HTML."""
    gr.Warning(html.escape(told(error)))


def telling(handler: Callable) -> Callable:
    """The handler of an event in the language of the state that it is given, with what it raises told: the visitor's
    mistakes as warnings, ours as errors. It changes nothing on the page then, or nothing more."""

    @wraps(handler)
    def function(*args, **kwargs):
        with speaking(of_state(args)), _toasts(), in_turn(unbounded()):
            return handler(*args, **kwargs)
        return {}

    @wraps(handler)
    def generator(*args, **kwargs):
        with closing(handler(*args, **kwargs)) as answers:
            answer = {}
            while answer is not None:
                answer = None
                # Anew each time: Gradio has any thread go on.
                with speaking(of_state(args)), _toasts(), in_turn(unbounded()):
                    answer = next(answers, None)
                if answer is not None:
                    yield answer

    return generator if inspect.isgeneratorfunction(handler) else function


@contextmanager
def _toasts() -> Iterator[None]:
    try:
        yield
    except VISITORS as error:
        warn(error)
    except Exception as error:
        raise gr.Error(html.escape(told(error)), print_exception=False) from error
