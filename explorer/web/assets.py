"""The page's scripts, and how they are served.

They are ES modules, served as they are in the source tree: `static/` has the shared ones, and each folder of
widgets its own. Values that they share with Python are written to further modules: `shared_constants.js`, and a
`messages.….js` for each language but English. All are in a new folder for each run of the app, so that no browser uses
a cached module of an older version. URLs are relative, so that the app works below any path.
"""

import atexit
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import plotly

from explorer import translations
from explorer.views.style import DARK, LIGHT, MONO_FONTS, SANS_FONTS, Theme, plotly_template
from explorer.web import shared_constants

WEB = Path(__file__).parent
ENTRY_SCRIPT = "static/page.js"  # what begins by itself
LAYOUT_SHEETS = (WEB / "page.css", WEB / "lessons_and_presenting.css")
STYLE_SHEET, PLOTLY = "widgets.css", "plotly.js"
FONT_WEIGHTS = {400: "Regular", 700: "Bold"}
MODULE_GLOBS = ("static/*.js", "widgets/*/*.js")  # of modules
MESSAGES_PREFIX = "static/messages."  # beginning of the name of each language's, of which a browser needs one at most
# Beginnings of the names of what the browser fetches once it is used (`loadLater` in page.js)
LAZY_PREFIXES = (
    "static/room_client.js",
    "widgets/figure/model_map.js",
    "widgets/header/search.js",
    "widgets/teaching/",
)


@cache
def head_tags() -> str:
    """Return the head's tags: the widgets' style sheet, and the entry script with what it needs at once.

    Without the preload links the browser would discover a module only after reading its importer, and a font only
    when text in it is drawn, which would then move. Fonts are prefetched: browsers warn of a preloaded one that is
    used only after seconds.
    """
    later = (MESSAGES_PREFIX, *LAZY_PREFIXES)
    module_names = (name for name in js_module_paths(static_folder()) if not name.startswith(later))
    preloads = (f'<link rel="modulepreload" href="{static_url(name)}">' for name in module_names)
    entry_tag = f'<script type="module" src="{static_url(ENTRY_SCRIPT)}"></script>'
    style = f'<link rel="stylesheet" href="{static_url(STYLE_SHEET)}">'
    fonts = (f'<link rel="prefetch" href="{path}" as="font" type="font/woff2" crossorigin>' for path in font_paths())
    return "".join((*fonts, style, *preloads, entry_tag))


@cache
def font_paths() -> list[str]:
    """Return the paths of the fonts' files below Gradio's front end, which are also their URLs."""
    names = [fonts[0].replace(" ", "") for fonts in (SANS_FONTS, MONO_FONTS)]
    return [f"static/fonts/{name}/{name}-{weight}.woff2" for name in names for weight in FONT_WEIGHTS.values()]


def import_expression(name: str) -> str:
    """Return JavaScript for a promise of a module's exports.

    If it cannot be loaded, `reload_incomplete_page.js` is notified.
    Gradio compiles scripts passed as text within its own module, against which a relative URL would be resolved.
    """
    notify = f'dispatchEvent(new CustomEvent("explorer:missing", {{ detail: "{name}" }}))'
    return f'import(new URL("{static_url(name)}", document.baseURI)).catch((error) => {{ {notify}; throw error; }})'


def event_script(expression: str, arguments: str = "") -> str:
    """Return JavaScript for a Gradio event: a function that evaluates an expression in which `page` is page.js."""
    return (
        f"async ({arguments}) => {{ const page = await {import_expression('static/page.js')}; return {expression}; }}"
    )


def write_plotly(target: Path):
    """Write the installed plotly.js, a classic script, under the name `ExplorerPlotly`.

    Gradio loads an older copy, and whichever loads last would own `window.Plotly`. The library is taken out of the
    functions that wrap it in the file, so that the browser need not parse it once for each of them.
    """
    source = (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    (target / PLOTLY).write_text(unwrap_plotly(source), encoding="utf-8")


def unwrap_plotly(source: str) -> str:
    """Return plotly.js as a classic script without its wrapping functions, under the name `ExplorerPlotly`."""
    licence, library = source[: source.index("*/") + 2], source[source.index(PLOTLY_START) : source.rindex(PLOTLY_END)]
    return f"{licence}\n{library.replace(PLOTLY_START, 'window.ExplorerPlotly=', 1)}"


PLOTLY_START, PLOTLY_END = "var Plotly=", "window.Plotly = Plotly;"


def static_url(name: str) -> str:
    """Return the URL of a file of `static_folder`, relative to the page."""
    return f"{static_path()}/{name}"


@cache
def static_path() -> str:
    """Return the path below which the files are served: another one for other files, the same in every process."""
    digest = hashlib.sha256()
    for path in sorted(path for path in static_folder().rglob("*") if path.is_file()):
        digest.update(path.relative_to(static_folder()).as_posix().encode() + path.read_bytes())
    return f"explorer/static/{digest.hexdigest()[:12]}"


@cache
def static_folder() -> Path:
    """Create the folder of served files, all modules and the generated ones, and return its path."""
    path = Path(tempfile.mkdtemp(prefix="transformerlm-explorer-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    write_static_files(path)
    return path


def write_static_files(target: Path):
    """Write the JavaScript modules, the generated ones too, plotly.js, and one style sheet of all widgets."""
    target.mkdir(parents=True, exist_ok=True)
    write_plotly(target)
    sheets = (path.read_text(encoding="utf-8") for path in sorted(WEB.glob("widgets/*/*.css")))
    (target / STYLE_SHEET).write_text("\n".join(sheets), encoding="utf-8")
    for name in js_module_paths(WEB):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(WEB / name, target / name)
    themes = {name: figure_theme(theme) for name, theme in (("light", LIGHT), ("dark", DARK))}
    constants_by_module = {"static/shared_constants.js": shared_constants.js_constants() | {"THEMES": themes}}
    constants_by_module |= {
        f"{MESSAGES_PREFIX}{name}.js": {"MESSAGES": translations.messages_for_js(name)}
        for name in translations.LANGUAGES
        if name != translations.ENGLISH
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
    """Return a theme's colour scales and Plotly template."""
    return {"sequential": theme.sequential, "diverging": theme.diverging, "template": plotly_template(theme)}


INLINE_FOLDER = Path(__file__).parent / "inline"
MESSAGE_PATTERN = re.compile(r"\b_\(\"(.+?)\"\)")


@cache
def inline_script_tags() -> bytes:
    """Return a script tag for each of the inline scripts."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(INLINE_FOLDER.glob("*.js")))
    return "".join(f"<script>{insert_messages(text)}</script>" for text in texts).encode()


def insert_messages(script: str) -> str:
    """Return a script with its messages in all languages in place of its first `{}`; it cannot rely on modules."""
    if not (texts := MESSAGE_PATTERN.findall(script)):
        return script
    catalogues = {name: translations.messages_for_js(name) for name in translations.LANGUAGES}
    messages = {
        name: {text: catalogue[text] for text in texts if text in catalogue} for name, catalogue in catalogues.items()
    }
    return script.replace("{}", json.dumps(messages).replace("</", r"<\/"), 1)
