"""The page's scripts, and how they are served.

They are ES modules, served as they are in the source tree: `static/` has the shared ones, and each widget's folder
its own. Values that they share with Python are written to further modules: `protocol.js`, `themes.js` and a
`messages.….js` for each language. All are in a new folder for each run of the app, so that no browser uses a cached
module of an older version. URLs are relative, so that the app works below any path.
"""

import atexit
import json
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
import plotly

from explorer import translations
from explorer.views.style import DARK, LIGHT, Theme, template
from explorer.web import protocol

WEB = Path(__file__).parent
ENTRY_SCRIPTS = ("static/theme.js", "static/page.js")  # what begins by itself, the theme before anything is drawn
MODULE_GLOBS = ("static/*.js", "widgets/*/*.js")  # of modules
MESSAGES_PREFIX = "static/messages."  # beginning of the name of each language's, of which a browser needs one


@cache
def page_script_tags() -> str:
    """Return the head's script tags: the entry scripts, and preload links for all modules but the messages.

    Without the links the browser would discover a module only after reading its importer, and a tab that is opened
    while the server does not answer would lack its widgets. Gradio's own scripts, which all widgets need, load
    first.
    """
    module_names = (name for name in js_module_paths(static_folder()) if not name.startswith(MESSAGES_PREFIX))
    preloads = (f'<link rel="modulepreload" href="{static_url(name)}" fetchpriority="low">' for name in module_names)
    entry_tags = (
        f'<script type="module" src="{static_url(name)}" fetchpriority="low"></script>' for name in ENTRY_SCRIPTS
    )
    return "".join((*preloads, *entry_tags))


def import_expression(name: str) -> str:
    """Return JavaScript for a promise of a module's exports; if it cannot be loaded, `incomplete.js` is notified.

    Gradio compiles scripts passed as text within its own module, against which a relative URL would be resolved.
    """
    notify = f'dispatchEvent(new CustomEvent("explorer:missing", {{ detail: "{name}" }}))'
    return f'import(new URL("{static_url(name)}", document.baseURI)).catch((error) => {{ {notify}; throw error; }})'


def event_script(expression: str, arguments: str = "") -> str:
    """Return JavaScript for a Gradio event: a function that evaluates an expression in which `page` is page.js."""
    return (
        f"async ({arguments}) => {{ const page = await {import_expression('static/page.js')}; return {expression}; }}"
    )


@cache
def plotly_script_tag() -> str:
    """Return the script tag of the installed plotly.js, a classic script, under the name `ExplorerPlotly`.

    Gradio loads an older copy, and whichever loads last would own `window.Plotly`. The library is taken out of the
    functions that wrap it in the file, so that the browser need not parse it once for each of them.
    """
    source = (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    licence, library = source[: source.index("*/") + 2], source[source.index(PLOTLY_START) : source.rindex(PLOTLY_END)]
    text = f"{licence}\n{library.replace(PLOTLY_START, 'window.ExplorerPlotly=', 1)}"
    (static_folder() / "plotly.js").write_text(text, encoding="utf-8")
    return f'<script src="{static_url("plotly.js")}"></script>'


PLOTLY_START, PLOTLY_END = "var Plotly=", "window.Plotly = Plotly;"


def static_url(name: str) -> str:
    """Return the URL at which Gradio serves a file of `static_folder`."""
    return f"gradio_api/file={(static_folder() / name).as_posix()}"


@cache
def static_folder() -> Path:
    """Create the folder of served files, all modules and the generated ones, and return its path."""
    path = Path(tempfile.mkdtemp(prefix="transformerlm-explorer-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    gr.set_static_paths([path])
    write_static_files(path)
    return path


def write_static_files(target: Path):
    """Write the JavaScript modules, the generated ones too, and the widgets' style sheets."""
    for name in (*js_module_paths(WEB), *(path.relative_to(WEB).as_posix() for path in WEB.glob("widgets/*/*.css"))):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(WEB / name, target / name)
    themes = {name: figure_theme(theme) for name, theme in (("light", LIGHT), ("dark", DARK))}
    constants_by_module = {"static/protocol.js": protocol.js_constants(), "static/themes.js": {"THEMES": themes}}
    constants_by_module |= {
        f"{MESSAGES_PREFIX}{name}.js": {"MESSAGES": translations.messages_for_js(name)}
        for name in translations.LANGUAGES
    }
    for name, values in constants_by_module.items():
        (target / name).write_text(js_constants_module(values), encoding="utf-8")


def js_module_paths(root: Path) -> list[str]:
    """Return the relative paths of all modules below a folder."""
    return sorted(path.relative_to(root).as_posix() for pattern in MODULE_GLOBS for path in root.glob(pattern))


def js_constants_module(values: Mapping[str, Any]) -> str:
    """Return the source of a JavaScript module of constants."""
    return "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in values.items())


def figure_theme(theme: Theme) -> dict[str, Any]:
    return {"sequential": theme.sequential, "diverging": theme.diverging, "template": template(theme)}
