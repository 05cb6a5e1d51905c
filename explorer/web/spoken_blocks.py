"""The page's Gradio app in the language of whoever asks for it."""

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import gradio as gr

from explorer.language import ENGLISH, speaking, spoken
from explorer.web.http.turns import Turns

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

    def translate(self, place: Callable[[], Any]):
        """Say what the first components say in every other language, too, from when one is first asked for.

        Args:
            place: places the same components in the open `gr.Blocks`.
        """
        self._props_in = cache(lambda language: placed(place, language))


def placed(place: Callable[[], Any], language: str) -> list[dict[str, Any]]:
    """The props of what is placed, in a language."""
    with _placing, speaking(language), gr.Blocks(analytics_enabled=False) as blocks:
        place()
    return [component["props"] for component in blocks.config["components"]]
