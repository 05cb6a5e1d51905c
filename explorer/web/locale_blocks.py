"""The Gradio app in the locale of each request."""

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import gradio as gr

from explorer.translations import ENGLISH, current_locale, use_locale

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

    def enable_translations(self, build: Callable[[], Any]):
        """Provide the components' texts in the other languages, rendered on first use.

        Args:
            build: builds the same components in the open `gr.Blocks`.
        """
        self._props_in = cache(lambda language: render_component_props(build, language))


def render_component_props(build: Callable[[], Any], language: str) -> list[dict[str, Any]]:
    """Return the props of the components that `build` creates, in a language."""
    with _build_lock, use_locale(language), gr.Blocks(analytics_enabled=False) as blocks:
        build()
    return [component["props"] for component in blocks.config["components"]]
