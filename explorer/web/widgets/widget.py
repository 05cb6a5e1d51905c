"""Base class of all widgets."""

import inspect
import json
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from explorer.web.assets import import_expression

# In a picture's place why there is none, and how to have it (jobs.js); below it what vouches for its numbers, and how
# the one that was clicked comes about (evidence.js).
EVIDENCE = (
    '<p class="instead" hidden></p><div class="job" role="status" hidden></div>'
    '<div class="evidence-mark"></div><output class="inspection" hidden></output>'
)


def escape_text(text: str) -> str:
    """Escape text for a template, between tags or in double quotes, for HTML and Gradio's template engine."""
    return re.sub(r"""[&<>"'`$@{}\\]""", lambda character: f"&#{ord(character[0])};", text)


def fill_template(html: str, **texts: str) -> str:
    """Return HTML with escaped texts in place of their names in braces."""
    return html.format(**{name: escape_text(text) for name, text in texts.items()})


def json_attribute(value: Any) -> str:
    """Return a value as JSON, escaped for an HTML attribute in double quotes."""
    return escape(json.dumps(value))


class Widget(gr.HTML):
    """A `gr.HTML` whose `value` is data, drawn by the module and the style sheet in the folder of its class.

    Both files have the folder's name. The template is static: Gradio's template engine executes its input, so
    prompts must never pass through it. The module's default export is a function of the widget's element and of what
    Gradio passes besides (`Gradio` in contents.js); it builds the DOM with `textContent` only. Initial data go into
    the template as `json_attribute`s: other props of a widget are lost if it is updated before its tab was ever
    open.
    """

    EMITS: tuple[str, ...] = ()  # its own events

    def __init__(self, value: Any = None, *, html: str, title: str = "", scripts: str = "", **kwargs):
        folder = Path(inspect.getfile(type(self))).parent
        css = folder / f"{folder.name}.css"
        super().__init__(
            value,
            html_template=(f"<h2>{escape_text(title)}</h2>" if title else "") + html,
            js_on_load=widget_start_script(f"widgets/{folder.name}/{folder.name}.js", self.EMITS),
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


def widget_start_script(module: str, events: Iterable[str]) -> str:
    """Return the JavaScript that starts a widget, for which page.js waits.

    Gradio only recognises events whose names are quoted in this script.
    """
    emit = ", ".join(f'{name}: () => trigger("{name}")' for name in events)
    start = f"(module) => module.default(element, {{ props, watch, emit: {{ {emit} }} }})"
    return f"(window.explorerStarting ??= []).push({import_expression(module)}.then({start}));"
