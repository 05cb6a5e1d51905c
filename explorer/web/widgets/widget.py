"""What all widgets share."""

import inspect
import json
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from explorer.web.assets import imported

# In a picture's place why there is none, and how to have it (jobs.js); below it what vouches for its numbers, and how
# the one that was clicked comes about (evidence.js).
EVIDENCE = (
    '<p class="instead" hidden></p><div class="job" role="status" hidden></div>'
    '<div class="evidence-mark"></div><output class="inspection" hidden></output>'
)


def as_text(words: str) -> str:
    """Words for a template, between its tags or within double quotes: neither HTML nor Gradio's engine reads more in
    them."""
    return re.sub(r"""[&<>"'`$@{}\\]""", lambda character: f"&#{ord(character[0])};", words)


def with_words(html: str, **words: str) -> str:
    """HTML with words, as text, in the place of their names in braces."""
    return html.format(**{name: as_text(text) for name, text in words.items()})


def attribute(value: Any) -> str:
    """A value as JSON within the double quotes of an HTML attribute."""
    return escape(json.dumps(value))


class Widget(gr.HTML):
    """A `gr.HTML` whose `value` is data, drawn and styled by the module and the style sheet in the folder of its class,
    which have the folder's name.

    The template is static: Gradio's template engine runs what it is given, so text of prompts must never pass through
    it. The module exports by default a function of the widget's element, and of what Gradio gives besides (`Gradio` in
    contents.js), which builds the DOM with `textContent` alone. What it needs to know from the beginning goes into
    the template as `attribute`s: other props of a widget are lost when it is updated before its tab was ever open.
    """

    EMITS: tuple[str, ...] = ()  # its own events

    def __init__(self, value: Any = None, *, html: str, title: str = "", scripts: str = "", **kwargs):
        folder = Path(inspect.getfile(type(self))).parent
        css = folder / f"{folder.name}.css"
        super().__init__(
            value,
            html_template=(f"<h2>{as_text(title)}</h2>" if title else "") + html,
            js_on_load=starting(f"widgets/{folder.name}/{folder.name}.js", self.EMITS),
            css_template=css.read_text(encoding="utf-8") if css.exists() else "",
            head=scripts or None,  # loaded before the module is
            apply_default_css=False,
            **kwargs,
        )

    def preprocess(self, payload: Any) -> Any:
        return payload

    def postprocess(self, value: Any) -> Any:
        return value

    def api_info(self) -> dict[str, Any]:
        return {"type": "object"}


def starting(module: str, events: Iterable[str]) -> str:
    """Script that starts a widget, which page.js waits for. Gradio knows those events alone whose names it finds quoted
    here."""
    emit = ", ".join(f'{name}: () => trigger("{name}")' for name in events)
    start = f"(module) => module.default(element, {{ props, watch, emit: {{ {emit} }} }})"
    return f"(window.explorerStarting ??= []).push({imported(module)}.then({start}));"
