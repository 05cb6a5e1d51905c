"""Widgets that Gradio lacks, in folders by subject: their base class, and helpers for their markup."""

import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any

# In a figure's place why there is none, and how to have it; below it what vouches for its numbers, and how the one
# that was clicked comes about (widget_contents.js).
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


class HtmlWidget:
    """A part of the page, drawn by a module and the style sheet in the folder of its class.

    The module exports a function with the widget's kind as its name, in camelCase, of the element that holds the
    widget's markup; its data come with the answers, under its id (static/widget_contents.js).
    It builds the DOM with `textContent` only: prompts never pass through markup.

    Attributes:
        kind: its name among all widgets; its rules in the style sheet hold for it.
        script: name of its module; "" for the folder's name.
        lazy: key that loads its module; "" if using the widget alone does; None if it is loaded with the page.

    Args:
        html: its markup, with texts escaped by `fill_template`.
        title: heading above it.
        elem_id: its id, unique on the page.
        elem_classes: its classes.
    """

    kind: str
    script = ""
    lazy: str | None = None

    def __init__(self, *, html: str, title: str = "", elem_id: str = "", elem_classes: Iterable[str] = ()):
        self.html, self.title, self.elem_id, self.elem_classes = html, title, elem_id, tuple(elem_classes)

    @property
    def markup(self) -> str:
        """The widget's markup, with the attributes by which the browser finds its script."""
        classes, folder = " ".join(("block", *self.elem_classes)), type(self).__module__.rpartition(".")[2]
        script = f'data-widget="{self.kind}" data-module="{folder}/{self.script or folder}"'
        if self.lazy is not None:
            script += f' data-lazy="{self.lazy}"'
        heading = f"<h2>{escape_text(self.title)}</h2>" if self.title else ""
        content = f'<div class="html-container">{heading}{self.html}</div>'
        return f'<div id="{self.elem_id}" class="{classes}" {script}>{content}</div>'
