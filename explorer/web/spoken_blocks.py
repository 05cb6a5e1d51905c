"""The page's Gradio app in the language of whoever asks for it."""

from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr

from explorer.language import ENGLISH, LANGUAGES, speaking, spoken


class SpokenBlocks(gr.Blocks):
    """Blocks whose words the browser gets in its visitor's language.

    What Gradio sends a browser first, and `gradio_config` has there, is `config`; which widgets there are, and what
    their events do, is the same in all languages.

    Attributes:
        words: language -> the props of each component, in their order, as far as that language has its own.
    """

    words: Mapping[str, list[dict[str, Any]]] = {}

    @property
    def config(self) -> dict[str, Any]:
        own = self._config["components"]
        told = self.words.get(spoken(), [])
        components = [component | {"props": props} for component, props in zip(own, told, strict=False)]
        return self._config | {"components": components + own[len(told) :], "language": spoken()}

    @config.setter
    def config(self, config: dict[str, Any]):
        self._config = config

    def translate(self, place: Callable[[], Any]):
        """Say what the first components say in all other languages, too.

        Args:
            place: places the same components in the open `gr.Blocks`.
        """
        self.words = {language: placed(place, language) for language in LANGUAGES if language != ENGLISH}


def placed(place: Callable[[], Any], language: str) -> list[dict[str, Any]]:
    """The props of what is placed, in a language."""
    with speaking(language), gr.Blocks(analytics_enabled=False) as blocks:
        place()
    return [component["props"] for component in blocks.config["components"]]
