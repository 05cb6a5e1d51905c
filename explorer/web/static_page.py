"""The page without a server: `python -m explorer.web.static_page` writes docs/try/ from the served page's parts.

The served page's scripts and styles run there as they are. Only the channel differs: an import map puts
`without_server/channel.js` in the place of `static/server_connection.js`, and Gradio's controls are plain ones.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from explorer.lessons.example_prompts import EXAMPLES
from explorer.state.generation_settings import MAX_STOP_CHARS, RANGES
from explorer.tracing.model_catalog import ModelCatalog
from explorer.tracing.training_history import checkpoints_of_training
from explorer.translations import ENGLISH
from explorer.views import VIEWS, View
from explorer.views.style import DARK, LIGHT, Theme, css_colours
from explorer.web import shared_constants
from explorer.web.assets import WEB, figure_theme, js_constants_module
from explorer.web.layout import TITLE, PageLayout, view_markup
from explorer.web.page import THEME_FIELDS
from explorer.web.widgets.header import ModelPicker

ROOT = WEB.parents[1]
TARGET = ROOT / "docs" / "try"
UP = "../../"  # from there to the repository
FIELDS = THEME_FIELDS | {"border_color_primary": "faint", "input_background_fill": "background"}
DRAWN = ("whole_model",)  # kinds of panels
# What needs Python, or stands for it, on the served page
HIDDEN = (
    *("lessons", "present", "room", "search", "language", "copy-python", "open-file", "glossary", "open-model"),
    *("runs", "compare", "questions", "branches"),
)


def write_static_page(target: Path = TARGET):
    """Write the page's files."""
    target.mkdir(parents=True, exist_ok=True)
    for name, text in page_files().items():
        (target / name).write_text(text, encoding="utf-8")


def page_files() -> dict[str, str]:
    """Return the content of each file."""
    catalog = ModelCatalog()
    models = {name: checkpoints_of_training(last, catalog.names) for name, last in ModelPicker.pack(catalog.names)}
    data = {
        "FIRST_PROMPT": next(iter(EXAMPLES.values())),
        "MODELS": models,
        "RANGES": RANGES,
        "MARKUP": {view.name: view_markup(without_plotly(view)) for view in VIEWS},
    }
    themes = {name: figure_theme(theme) for name, theme in (("light", LIGHT), ("dark", DARK))}
    constants = shared_constants.js_constants() | {
        "LANGUAGES": {ENGLISH: "English"},
        "HAS_PLOTLY": False,
        "THEMES": themes,
    }
    return {
        "index.html": page_html(catalog),
        "page_data.js": js_constants_module(data),
        "shared_constants.js": js_constants_module(constants),
        "worker.js": f'import"{UP}explorer/web/without_server/worker.js";\n',
        "service_worker.js": f'importScripts("{UP}explorer/web/without_server/service_worker.js");\n',
    }


def without_plotly(view: View) -> View:
    """Return the view with those panels that the page without a server draws."""
    return replace(view, panels=tuple(panel for panel in view.panels if panel.kind in DRAWN))


def page_html(catalog: ModelCatalog) -> str:
    """Return the page."""
    static, own = f"{UP}explorer/web/static/", f"{UP}explorer/web/without_server/"
    imports = {
        f"{static}server_connection.js": f"{own}channel.js",
        f"{static}shared_constants.js": "./shared_constants.js",
        f"{own}page_data.js": "./page_data.js",
    }
    sheets = [WEB / "page.css", *sorted(WEB.glob("widgets/*/*.css")), WEB / "without_server" / "controls.css"]
    styles = "\n".join(f'<link rel="stylesheet" href="{UP}{sheet.relative_to(ROOT).as_posix()}">' for sheet in sheets)
    hidden = ", ".join(f"#{name}" for name in HIDDEN)
    return HTML.format(
        title=escape(TITLE),
        imports=json.dumps({"imports": imports}, indent=2),
        styles=styles,
        colours=theme_css() + css_colours() + f"{hidden} {{ display: none !important; }}",
        body=layout_html(catalog),
        start=f"{own}start.js",
    )


HTML = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<script type="importmap">
{imports}
</script>
{styles}
<style>
{colours}
</style>
</head>
<body>
<p id="unable" role="alert" hidden></p>
<script>
  // What cannot start says so: scripts that do not come, and browsers without modules or import maps.
  const tell = (why) => Object.assign(document.getElementById("unable"), {{ textContent: why, hidden: false }});
  const serve = "This page lacks some of its files. Serve the whole repository, as with “python -m http.server” in " +
    "its folder, and open docs/try/ there.";
  const old = "This page needs a newer browser: Firefox 108, Chrome 89, Safari 16.4 or later.";
  addEventListener("error", ({{ target }}) => {{ if (target !== window) tell(serve); }}, {{ capture: true }});
  addEventListener("unhandledrejection", ({{ reason }}) => {{ if (/module/.test(reason)) tell(serve); }});
  if (!HTMLScriptElement.supports?.("importmap")) tell(old);
  if (matchMedia("(prefers-color-scheme: dark)").matches) document.body.classList.add("dark");
</script>
<noscript>This page runs a language model in your browser, which needs JavaScript.</noscript>
<div class="gradio-container"><main class="contain">
{body}
</main></div>
<script type="module" src="{start}"></script>
</body>
</html>
"""


def theme_css() -> str:
    """Return the CSS variables that Gradio has on the served page."""

    def rule(selector: str, theme: Theme) -> str:
        values = "".join(f" --{name.replace('_', '-')}: {getattr(theme, field)};" for name, field in FIELDS.items())
        return f"{selector} {{{values} }}\n"

    return rule(":root", LIGHT) + rule(".dark", DARK)


def layout_html(catalog: ModelCatalog) -> str:
    """Return the markup of the page's components, one inside the other as in its layout."""
    with gr.Blocks(analytics_enabled=False) as blocks:
        layout = PageLayout(catalog)
    names = {component._id: name for name, component in layout.settings.items()}
    config = blocks.get_config_file()
    components = {component["id"]: component for component in config["components"]}

    def render(nodes: Iterable[dict[str, Any]]) -> str:
        return "\n".join(map(render_one, nodes))

    def render_one(node: dict[str, Any]) -> str:
        component = components[node["id"]]
        inner = render(node.get("children") or [])
        return component_html(component["type"], component["props"], names.get(node["id"]), inner)

    return render(config["layout"]["children"])


def component_html(kind: str, props: dict[str, Any], setting: str | None, inner: str) -> str:
    """Return one component's markup.

    Args:
        setting: name of the generation setting that it is for; None for none.
        inner: markup of what is in it.
    """
    name, value = props.get("elem_id") or setting, props.get("value")
    elem_id = f' id="{name}"' if name else ""
    classes = " ".join(props.get("elem_classes") or [])
    if kind == "html":
        if "region" not in classes:  # what Gradio's events share with the script
            return ""
        return f'<div{elem_id} class="block region"><div class="html-container"><div>{value}</div></div></div>'
    if kind in ("row", "column"):
        style = f' style="flex-grow:{props["scale"]}"' if "scale" in props else ""
        return f'<div{elem_id} class="{kind} {classes}"{style}>\n{inner}\n</div>'
    if kind == "form":
        return inner
    if kind == "button":
        look = "primary" if props["variant"] == "primary" else "secondary"
        return f'<button type="button"{elem_id} class="{look}">{escape(value)}</button>'
    label = escape(props["label"])
    if name == "prompt":
        texts = f'aria-label="{label}" placeholder="{escape(props["placeholder"])}"'
        return f'<div{elem_id} class="block"><textarea rows="1" {texts}></textarea></div>'
    if kind == "checkbox":
        return f'<label{elem_id} class="control check"><input type="checkbox"> {label}</label>'
    limits = f'min="{props.get("minimum")}" max="{props.get("maximum")}" step="{props.get("step")}" value="{value}"'
    number = f'<input type="number" {limits} aria-label="{label}">'
    boxes = {
        "slider": f'{number}<input type="range" {limits} aria-label="{label}">',
        "number": number,
        "textbox": f'<input type="text" maxlength="{MAX_STOP_CHARS}" aria-label="{label}">',
    }
    info = f"<small>{escape(props['info'])}</small>" if props.get("info") else ""
    return f'<div{elem_id} class="control {kind}"><span>{label}</span>{info}{boxes[kind]}</div>'


if __name__ == "__main__":
    write_static_page()
