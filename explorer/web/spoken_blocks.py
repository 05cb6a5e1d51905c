"""The page's Gradio app in the language of whoever asks for it."""

import html
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

import gradio as gr

from explorer.language import ENGLISH, speaking, spoken
from explorer.web import light_sessions as light_sessions  # before Gradio makes any
from explorer.web.errors import told
from explorer.web.http.argument_types import argument_types
from explorer.web.http.gate import budget_of
from explorer.web.http.turns import Turns, visitor
from explorer.web.http.visitors import visitor_of
from explorer.web.log_lines import log_budget
from explorer.web.visitors_language import of_state

_placing = Lock()  # Gradio knows one open `gr.Blocks` in the whole process


class SpokenBlocks(gr.Blocks):
    """Blocks whose words the browser gets in its visitor's language.

    What Gradio sends a browser first, and `gradio_config` has there, is `config`; which widgets there are, and what
    their events do, is the same in all languages.
    """

    _props_in: Callable[[str], list[dict[str, Any]]] | None = None

    @property
    def config(self) -> dict[str, Any]:
        own, language = self._config["components"], spoken()
        told = self._props_in(language) if self._props_in and language != ENGLISH else []
        components = [component | {"props": props} for component, props in zip(own, told, strict=False)]
        return self._config | {"components": components + own[len(told) :], "language": language}

    @config.setter
    def config(self, config: dict[str, Any]):
        self._config = config

    def create_limiter(self):
        """Gradio's way to say, when it begins to serve, how many threads compute at a time."""
        self.limiter = Turns()

    async def process_api(
        self, block_fn: Any, inputs: list[Any], state: Any = None, request: gr.Request | None = None, *more, **options
    ) -> dict[str, Any]:
        """Gradio's way to answer an event, or to go on with one: in one turn of whoever asks, where Gradio would have a
        turn for each of the widgets that are read and written; with arguments of the types that the function has, or
        an error that says which are not."""
        visitor.set(visitor_of(request))
        log_budget.set(budget_of(request))
        is_for_page = block_fn.api_visibility != "public"
        with speaking(of_state(inputs)), _told(is_for_page):
            if not block_fn.cancels:  # which Gradio has take a session's name
                argument_types(block_fn.fn, len(block_fn.inputs)).check(inputs)
        async with self.limiter.held() if isinstance(self.limiter, Turns) else nullcontext():
            with _told(is_for_page):
                return await super().process_api(block_fn, inputs, state, request, *more, **options)

    def translate(self, place: Callable[[], Any]):
        """Say what the first components say in every other language, too, from when one is first asked for.

        Args:
            place: places the same components in the open `gr.Blocks`.
        """
        self._props_in = cache(lambda language: placed(place, language))


@contextmanager
def _told(is_for_page: bool) -> Iterator[None]:
    """Tell what is raised as Gradio's errors, of which the log has what is to be there.

    Args:
        is_for_page: which reads it as HTML.
    """
    try:
        yield
    except gr.Error:
        raise
    except Exception as error:
        text = told(error)
        raise gr.Error(html.escape(text) if is_for_page else text, print_exception=False) from None


def placed(place: Callable[[], Any], language: str) -> list[dict[str, Any]]:
    """The props of what is placed, in a language."""
    with _placing, speaking(language), gr.Blocks(analytics_enabled=False) as blocks:
        place()
    return [component["props"] for component in blocks.config["components"]]
