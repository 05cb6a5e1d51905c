"""Scripts that widgets share."""

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import gradio as gr
import plotly

from explorer.views.style import DARK, LIGHT, template
from explorer.web.protocol import for_script

STATIC = Path(__file__).with_name("static")
# In the order in which they need one another.
SHARED = ("connection.js", "reach.js", "ink.js", "lines.js", "pace.js", "history.js", "explorer.js")


@cache
def shared_script() -> str:
    """Script tag for what widgets share: the page's state and themes, `window.Explorer`, and all `SHARED`."""
    themes = {
        name: {"sequential": theme.sequential, "template": template(theme).to_plotly_json()}
        for name, theme in (("light", LIGHT), ("dark", DARK))
    }
    given = f"window.ExplorerThemes = {json.dumps(themes)}; window.Protocol = {json.dumps(for_script())};"
    scripts = ((STATIC / name).read_text(encoding="utf-8") for name in SHARED)
    return script_tag("explorer.js", "\n".join((given, *scripts)))


@cache
def theme_script() -> str:
    """Script tag for what chooses the theme before the page is drawn."""
    return script_tag("theme.js", (STATIC / "theme.js").read_text(encoding="utf-8"))


@cache
def plotly_script() -> str:
    """Script tag for the wheel's own plotly.js under the name `ExplorerPlotly`.

    Gradio brings an older copy, and whichever loads last would own `window.Plotly`.

    Taken out of the functions that the file wraps it in, a browser need not parse it once for each of them.
    """
    source = (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    licence, library = source[: source.index("*/") + 2], source[source.index(BEGINS) : source.rindex(ENDS)]
    return script_tag("plotly.js", f"{licence}\n{library.replace(BEGINS, 'window.ExplorerPlotly=', 1)}")


BEGINS, ENDS = "var Plotly=", "window.Plotly = Plotly;"


def script_tag(name: str, text: str) -> str:
    """Have Gradio serve the script; the address is relative, so that the app works below any path."""
    path = folder() / name
    path.write_text(text, encoding="utf-8")
    return f'<script src="gradio_api/file={path}"></script>'


@cache
def folder() -> Path:
    path = Path(tempfile.mkdtemp(prefix="transformerlm-explorer-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    gr.set_static_paths([path])
    return path
