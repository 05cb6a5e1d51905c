"""Error messages of events as toasts."""

import html
import inspect
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps

import gradio as gr

from explorer.tracing.request_budget import unlimited_budget
from explorer.translations import use_locale
from explorer.web.errors import USER_ERRORS, user_message
from explorer.web.http.turns import time_sliced
from explorer.web.request_locale import locale_from_state


def warn(error: Exception):
    """Show an error's message as a warning, escaped, as Gradio would read it as HTML."""
    gr.Warning(html.escape(user_message(error)))


def with_error_toasts(handler: Callable) -> Callable:
    """Decorate a handler to run in the state's locale and to show errors as toasts.

    Users' mistakes are shown as warnings, ours as errors; the page is not changed any further then.
    """

    @wraps(handler)
    def function(*args, **kwargs):
        with use_locale(locale_from_state(args)), _errors_as_toasts(), time_sliced(unlimited_budget()):
            return handler(*args, **kwargs)
        return {}

    @wraps(handler)
    def generator(*args, **kwargs):
        with closing(handler(*args, **kwargs)) as answers:
            answer = {}
            while answer is not None:
                answer = None
                # Anew each time: Gradio has any thread go on.
                with use_locale(locale_from_state(args)), _errors_as_toasts(), time_sliced(unlimited_budget()):
                    answer = next(answers, None)
                if answer is not None:
                    yield answer

    return generator if inspect.isgeneratorfunction(handler) else function


@contextmanager
def _errors_as_toasts() -> Iterator[None]:
    try:
        yield
    except USER_ERRORS as error:
        warn(error)
    except Exception as error:
        raise gr.Error(html.escape(user_message(error)), print_exception=False) from error
