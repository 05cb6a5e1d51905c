"""Scripts and how the browser gets them.

The page's scripts are ES modules, served as they stand in the source tree: `static/` has what widgets share, and each
widget's folder its own. What Python knows and they need, too, is in modules beside them: `protocol.js`, `themes.js` and
a `messages.….js` of each language. All lie in a folder of their own for as long as the app runs, so that no browser
keeps a module of an older version. Addresses are relative, so that the app works below any path.
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

from explorer import language
from explorer.views.style import DARK, LIGHT, Theme, template
from explorer.web import protocol

WEB = Path(__file__).parent
FIRST = ("static/theme.js", "static/page.js")  # what begins by itself, the theme before anything is drawn
PLACES = ("static/*.js", "widgets/*/*.js")  # of modules
MESSAGES = "static/messages."  # beginning of the name of each language's, of which a browser needs one


@cache
def page_scripts() -> str:
    """Tags for the page's head that begin with `FIRST` and have the browser fetch every module but messages at once.

    Without them it would know of a module only when it has read the one that imports it; and a tab that is opened while
    nobody answers would lack those of its widgets. Gradio's own scripts, without which there is no widget, go first.
    """
    needed = (name for name in modules(folder()) if not name.startswith(MESSAGES))
    preloads = (f'<link rel="modulepreload" href="{address(name)}" fetchpriority="low">' for name in needed)
    begins = (f'<script type="module" src="{address(name)}" fetchpriority="low"></script>' for name in FIRST)
    return "".join((*preloads, *begins))


def imported(name: str) -> str:
    """JavaScript for a promise of a module's exports; where it does not come, `incomplete.js` is told.

    Scripts that Gradio is given as text are compiled in its own: to them a relative address would be beside that.
    """
    tell = f'dispatchEvent(new CustomEvent("explorer:missing", {{ detail: "{name}" }}))'
    return f'import(new URL("{address(name)}", document.baseURI)).catch((error) => {{ {tell}; throw error; }})'


def page_script(expression: str, arguments: str = "") -> str:
    """JavaScript for one of Gradio's events: a function with the value of an expression, in which `page` is page.js."""
    return f"async ({arguments}) => {{ const page = await {imported('static/page.js')}; return {expression}; }}"


@cache
def plotly_script() -> str:
    """Script tag for the wheel's own plotly.js, a classic script, under the name `ExplorerPlotly`.

    Gradio brings an older copy, and whichever loads last would own `window.Plotly`.

    Taken out of the functions that the file wraps it in, a browser need not parse it once for each of them.
    """
    source = (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    licence, library = source[: source.index("*/") + 2], source[source.index(BEGINS) : source.rindex(ENDS)]
    text = f"{licence}\n{library.replace(BEGINS, 'window.ExplorerPlotly=', 1)}"
    (folder() / "plotly.js").write_text(text, encoding="utf-8")
    return f'<script src="{address("plotly.js")}"></script>'


BEGINS, ENDS = "var Plotly=", "window.Plotly = Plotly;"


def address(name: str) -> str:
    """Where Gradio serves a file of `folder`."""
    return f"gradio_api/file={(folder() / name).as_posix()}"


@cache
def folder() -> Path:
    """What is served: all modules, and what is written besides."""
    path = Path(tempfile.mkdtemp(prefix="transformerlm-explorer-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    gr.set_static_paths([path])
    write_modules(path)
    return path


def write_modules(to: Path):
    """All modules, where they stand to each other as they do in the source tree, and the widgets' style sheets."""
    for name in (*modules(WEB), *(path.relative_to(WEB).as_posix() for path in WEB.glob("widgets/*/*.css"))):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(WEB / name, to / name)
    themes = {name: for_figures(theme) for name, theme in (("light", LIGHT), ("dark", DARK))}
    written = {"static/protocol.js": protocol.for_script(), "static/themes.js": {"THEMES": themes}}
    written |= {f"{MESSAGES}{name}.js": {"MESSAGES": language.for_script(name)} for name in language.LANGUAGES}
    for name, values in written.items():
        (to / name).write_text(exported(values), encoding="utf-8")


def modules(root: Path) -> list[str]:
    """Names of all modules below a folder."""
    return sorted(path.relative_to(root).as_posix() for place in PLACES for path in root.glob(place))


def exported(values: Mapping[str, Any]) -> str:
    """A module of constants."""
    return "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in values.items())


def for_figures(theme: Theme) -> dict[str, Any]:
    return {"sequential": theme.sequential, "diverging": theme.diverging, "template": template(theme)}
