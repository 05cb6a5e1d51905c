"""What all widgets share."""

import inspect
from pathlib import Path
from typing import Any

import gradio as gr

from explorer.components.assets import shared_script


class Widget(gr.HTML):
    """A `gr.HTML` whose `value` is data, drawn by the `.js` file and styled by the `.css` file beside its class.

    The template is static: Gradio's template engine runs what it is given, so text of prompts must never pass through
    it. The script builds the DOM from `props.value` with `textContent` alone.
    """

    def __init__(self, value: Any = None, *, html: str, scripts: str = "", **kwargs):
        source = Path(inspect.getfile(type(self)))
        css = source.with_suffix(".css")
        super().__init__(
            value,
            html_template=html,
            js_on_load=source.with_suffix(".js").read_text(encoding="utf-8"),
            css_template=css.read_text(encoding="utf-8") if css.exists() else "",
            head=shared_script() + scripts,  # loaded before the widget's own script runs
            apply_default_css=False,
            **kwargs,
        )

    def preprocess(self, payload: Any) -> Any:
        return payload

    def postprocess(self, value: Any) -> Any:
        return value

    def api_info(self) -> dict[str, Any]:
        return {"type": "object"}
