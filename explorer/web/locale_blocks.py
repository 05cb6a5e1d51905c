"""The Gradio app in the locale of each request."""

import html
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

import gradio as gr

from explorer.translations import ENGLISH, current_locale, use_locale
from explorer.web import light_sessions as light_sessions  # before Gradio makes any
from explorer.web.errors import user_message
from explorer.web.http.argument_types import argument_types
from explorer.web.http.clients import client_id
from explorer.web.http.security_middleware import request_log_budget
from explorer.web.http.turns import FairScheduler, current_client
from explorer.web.log_lines import log_budget
from explorer.web.request_locale import locale_from_state

_build_lock = Lock()  # Gradio knows one open `gr.Blocks` in the whole process


class LocalizedBlocks(gr.Blocks):
    """Blocks whose texts are sent in the user's language.

    Gradio sends `config` to a browser first, as `gradio_config`; components and events are the same in all
    languages.
    """

    _props_in: Callable[[str], list[dict[str, Any]]] | None = None

    @property
    def config(self) -> dict[str, Any]:
        own, language = self._config["components"], current_locale()
        localized_props = self._props_in(language) if self._props_in and language != ENGLISH else []
        components = [component | {"props": props} for component, props in zip(own, localized_props, strict=False)]
        return self._config | {"components": components + own[len(localized_props) :], "language": language}

    @config.setter
    def config(self, config: dict[str, Any]):
        self._config = config

    def create_limiter(self):
        """Set the scheduler of computing threads; Gradio calls this when it starts to serve."""
        self.limiter = FairScheduler()

    async def process_api(
        self, block_fn: Any, inputs: list[Any], state: Any = None, request: gr.Request | None = None, *more, **options
    ) -> dict[str, Any]:
        """Answer an event, or continue one, in one slot of the scheduler, with validated arguments.

        Gradio's own method takes a slot for each widget that is read or written.
        """
        current_client.set(client_id(request))
        log_budget.set(request_log_budget(request))
        is_for_page = block_fn.api_visibility != "public"
        with use_locale(locale_from_state(inputs)), _errors_as_gradio_errors(is_for_page):
            if not block_fn.cancels:  # which Gradio has take a session's name
                argument_types(block_fn.fn, len(block_fn.inputs)).check(inputs)
        async with self.limiter.slot() if isinstance(self.limiter, FairScheduler) else nullcontext():
            with _errors_as_gradio_errors(is_for_page):
                return await super().process_api(block_fn, inputs, state, request, *more, **options)

    def enable_translations(self, build: Callable[[], Any]):
        """Provide the components' texts in the other languages, rendered on first use.

        Args:
            build: builds the same components in the open `gr.Blocks`.
        """
        self._props_in = cache(lambda language: render_component_props(build, language))


@contextmanager
def _errors_as_gradio_errors(is_for_page: bool) -> Iterator[None]:
    """Turn errors into Gradio's errors, and log internal ones.

    Args:
        is_for_page: whether the page reads the message, as HTML.
    """
    try:
        yield
    except gr.Error:
        raise
    except Exception as error:
        text = user_message(error)
        raise gr.Error(html.escape(text) if is_for_page else text, print_exception=False) from None


def render_component_props(build: Callable[[], Any], language: str) -> list[dict[str, Any]]:
    """Return the props of the components that `build` creates, in a language."""
    with _build_lock, use_locale(language), gr.Blocks(analytics_enabled=False) as blocks:
        build()
    return [component["props"] for component in blocks.config["components"]]
