"""Texts of Gradio's components in the language of a visitor."""

from collections.abc import Callable
from contextvars import Context
from functools import cache
from threading import Lock
from typing import Any

import gradio as gr

from explorer.translations import ENGLISH, negotiate_locale, use_locale
from explorer.web.layout import StateComponent
from explorer.web.middleware.request_types import State

TEXT_PROPS = ("value", "label", "info", "placeholder")
_build_lock = Lock()  # Gradio knows one open `gr.Blocks` in the whole process


def localized_components(blocks: gr.Blocks) -> list[gr.blocks.Block]:
    """Return the components that have texts."""
    with_texts = (
        block for block in blocks.blocks.values() if isinstance(block, gr.components.Component | gr.Accordion)
    )
    return [block for block in with_texts if not isinstance(block, StateComponent)]


class Localization:
    """The components' texts in each language, rendered on first use.

    Args:
        build: builds the page's components in the open `gr.Blocks`.
    """

    def __init__(self, build: Callable[[], Any]):
        self._build = build
        # In a context of its own: in that of an event Gradio takes new components for updates.
        self._props = cache(lambda language: Context().run(self._render, language))

    def _render(self, language: str) -> list[dict[str, Any]]:
        with _build_lock, use_locale(language), gr.Blocks(analytics_enabled=False) as blocks:
            self._build()
        props = {component["id"]: component["props"] for component in blocks.config["components"]}
        return [props[block._id] for block in localized_components(blocks)]

    def updates(self, state: State) -> list[dict[str, Any]]:
        """Return the updates of all components, in order, to the language of the page's state."""
        language = negotiate_locale(state.get("lang"))
        return [
            gr.update(**{name: props[name] for name in TEXT_PROPS if props.get(name) != english.get(name)})
            for english, props in zip(self._props(ENGLISH), self._props(language), strict=True)
        ]
