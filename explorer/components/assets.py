"""What the page's head loads before any widget."""

import json
import tempfile
from functools import cache
from pathlib import Path

import gradio as gr
import plotly

from explorer.style import DARK, LIGHT, template


@cache
def head() -> str:
    """Script tags for Plotly, the widgets' shared script and the themes.

    The wheel's own plotly.js is served under the name `ExplorerPlotly`: Gradio brings an older copy, and whichever
    loads last would own `window.Plotly`. Addresses are relative, so that the app works below any path.
    """
    folder = Path(tempfile.mkdtemp(prefix="transformerlm-explorer-"))
    gr.set_static_paths([folder])
    themes = {
        name: {"sequential": theme.sequential, "template": template(theme).to_plotly_json()}
        for name, theme in (("light", LIGHT), ("dark", DARK))
    }
    scripts = {
        "plotly.js": ISOLATED.replace("PLOTLY", plotly_js()),
        "explorer.js": Path(__file__).with_name("explorer.js").read_text(encoding="utf-8"),
        "themes.js": f"window.ExplorerThemes = {json.dumps(themes)};",
    }
    for name, text in scripts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return "".join(f'<script src="gradio_api/file={folder / name}"></script>' for name in scripts)


ISOLATED = """(function () {
  var had = "Plotly" in window, old = window.Plotly;
  var module = { exports: {} }, exports = module.exports, define;
  PLOTLY
  ;window.ExplorerPlotly = module.exports;
  if (had) window.Plotly = old; else delete window.Plotly;
})();
"""


def plotly_js() -> str:
    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
