"""The page without a server, docs/try/, written from the served page's parts.

`python -m explorer.web.static_page` writes it; with the path of a new plotly.js bundle as argument, that too.

The served page's scripts and styles run there as they are. Only the connection differs: an import map puts
`without_server/answers.js` in the place of `static/server_connection.js`, and Gradio's controls are plain ones. The
figures' declarations are written as data.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, replace
from html import escape, unescape
from pathlib import Path
from typing import Any

import gradio as gr
import torch

from explorer.errors import UserError
from explorer.explain.captured import ELEMENT_NAMES, embedding, formulas
from explorer.explain.captured.attention import ROTATION_FORMULAS
from explorer.explain.captured.tap_formulas import get_formula
from explorer.explain.derivation import COMPARISON_TEXTS, tolerance
from explorer.explain.notation import ELEMENTS
from explorer.explain.source_code import mark_line, model_code
from explorer.interventions import Scale, ZeroAblation, parse_interventions
from explorer.lessons.example_prompts import EXAMPLES
from explorer.lessons.lesson import Lesson, LessonLibrary, LessonStep
from explorer.state.generation_settings import MAX_STOP_CHARS, RANGES
from explorer.state.selection import find_field
from explorer.tracing.capture import tap_shapes
from explorer.tracing.model_catalog import ModelCatalog
from explorer.tracing.training_history import checkpoints_of_training
from explorer.translations import ENGLISH, LANGUAGES, messages_for_js, use_locale
from explorer.views import VIEWS, Panel, View, style
from explorer.views.selection import TITLES
from explorer.views.style import DARK, LIGHT, MONO_FONTS, SANS_FONTS, Theme, css_colours
from explorer.views.verification import CapturedCellInspector, TapVerifier
from explorer.web import shared_constants
from explorer.web.assets import (
    FONT_WEIGHTS,
    LAYOUT_SHEETS,
    WEB,
    figure_theme,
    font_paths,
    js_constants_module,
    unwrap_plotly,
)
from explorer.web.browser_api.lesson_endpoints import hidden_elements, sets_sampling
from explorer.web.layout import TITLE, PageLayout, view_markup
from explorer.web.page import THEME_FIELDS
from explorer.web.shared_constants import element_id
from explorer.web.widgets.header import ModelPicker
from model.checkpoint import find_checkpoint
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

ROOT = WEB.parents[1]
TARGET = ROOT / "docs" / "try"
UP = "../../"  # from there to the repository
FIELDS = THEME_FIELDS | {"border_color_primary": "faint", "input_background_fill": "background"}
# The views that it draws besides the whole model: those panels whose figures are declared, and the grid of heads
DRAWN_VIEWS = ("tokens", "attention", "positions", "feed_forward", "residual", "prediction")
DRAWN_KINDS = ("whole_model", "head_grid")
PLOTLY = "plotly.js"  # beside the page
COLOURS = ("ATTENTION", "FEED_FORWARD", "EMBEDDING", "NORM", "RESIDUAL", "SELECTED", "QUERY", "KEY", "MONO")
# What needs Python, or stands for it, on the served page
HIDDEN = (
    *("present", "present-lesson", "to-slides", "room", "search", "copy-python", "open-file", "open-model"),
    *("runs", "compare", "questions", "branches"),
)


def write_static_page(target: Path = TARGET):
    """Write the page's files."""
    target.mkdir(parents=True, exist_ok=True)
    for name, text in page_files().items():
        (target / name).write_text(text, encoding="utf-8")
    for path in font_paths():
        shutil.copy(Path(gr.__file__).parent / "templates" / "frontend" / path, target)


def page_files() -> dict[str, str]:
    """Return the content of each file."""
    catalog = ModelCatalog()
    models = {name: checkpoints_of_training(last, catalog.names) for name, last in ModelPicker.pack(catalog.names)}
    configs = {name: read_config(steps[-1]) for name, steps in models.items()}
    data = {
        "FIRST_PROMPT": next(iter(EXAMPLES.values())),
        "MODELS": models,
        "RANGES": RANGES,
        "MARKUP": {view.name: view_markup(drawn_part(view)) for view in VIEWS},
        "VIEWS": {
            view.name: pack_view(drawn_part(view), configs) for view in VIEWS if view.name in (*DRAWN_VIEWS, "overview")
        },
        "FIGURES": figure_templates(),
        "CHOICES": {name: pack_choice(name) for view in VIEWS for name in drawn_part(view).select_controls},
        "COLOURS": {name: getattr(style, name) for name in COLOURS},
        "FORMULAS": {name: pack_formulas(config) for name, config in configs.items()},
        "CODE": {name: view_codes(config) for name, config in configs.items()},
        "ELEMENT_NAMES": ELEMENT_NAMES,
        "FORMULA_TEXTS": FORMULA_TEXTS,
        "TOLERANCE": tolerance("float32"),
    }
    themes = {name: figure_theme(theme) for name, theme in (("light", LIGHT), ("dark", DARK))}
    constants = shared_constants.js_constants() | {
        "PLOTLY_URL": f"../../../docs/try/{PLOTLY}",  # from the script that draws figures
        "THEMES": themes,
    }
    page, page_data = page_html(catalog), js_constants_module(data)
    return {
        "index.html": page,
        "page_data.js": page_data,
        "shared_constants.js": js_constants_module(constants),
        "worker.js": f'import"{UP}explorer/web/without_server/worker.js";\n',
        "service_worker.js": f'importScripts("{UP}explorer/web/without_server/service_worker.js");\n',
        **message_files(page + page_data),
        **lesson_files(),
    }


def lesson_files() -> dict[str, str]:
    """Return each language's lessons, which are fetched once somebody learns."""
    views, library, files = (*DRAWN_VIEWS, "overview"), LessonLibrary(), {}
    all_figures, figures = (
        {element_id(view.name, panel.name) for view in several for panel in view.panels}
        for several in (VIEWS, map(drawn_part, VIEWS))
    )
    for language in LANGUAGES:
        with use_locale(language):
            lessons = pack_lessons(library, views, all_figures - figures)
            files[f"lessons.{language}.js"] = js_constants_module({"LESSONS": lessons})
    return files


# Whether a reply is right is computed there, as here, from the run (`web/without_server/lessons.js`).
SCALED_TAPS = ("attn.z", "ffn.hidden")  # of the interventions that the page has


def pack_lessons(library: LessonLibrary, views: Collection[str], missing: Collection[str]) -> list[dict[str, Any]]:
    """Return all lessons in the current language.

    Args:
        views: that the page draws.
        missing: element ids of figures that it does not draw.
    """
    return [pack_lesson(lesson, views, missing) for lesson in library.lessons.values()]


def pack_lesson(lesson: Lesson, views: Collection[str], missing: Collection[str]) -> dict[str, Any]:
    """Return a lesson's fields and its steps, or the number of its steps alone if most of them need Python."""
    steps = [pack_step(step, views, missing) for step in lesson.steps]
    is_offered = 2 * sum(step["is_here"] for step in steps) > len(steps)
    listed = {name: value for name, value in asdict(lesson).items() if name not in ("steps", "prerequisites")}
    return listed | {"length": len(steps), "steps": steps if is_offered else []}


def pack_step(step: LessonStep, views: Collection[str], missing: Collection[str]) -> dict[str, Any]:
    """Return a step's fields, the class of its question or task, and whether the page has all that it needs."""
    fields = asdict(step)
    is_drawn = step.state["view"] in views and step.target not in missing
    packed = {name: fields[name] for name in ("title", "before", "target", "state", "question_text", "after", "values")}
    question, texts = step.question or step.task, re.findall('"([^"]*)"', json.dumps(fields))
    return packed | {
        "is_here": is_drawn and all(map(is_scaling, texts)),
        "is_task": step.task is not None,
        "kind": type(question).__name__ if question else None,
        "question": fields["question"] or fields["task"],
        "hides": hidden_elements(step),
        "sets_sampling": sets_sampling(step),
    }


def is_scaling(text: str) -> bool:
    """Return whether a text is no intervention, or scales heads or neurons, which the page can."""
    try:
        interventions = parse_interventions(text)
    except (UserError, ValueError):
        return True
    return all(
        isinstance(intervention, Scale | ZeroAblation) and intervention.tap.endswith(SCALED_TAPS)
        for intervention in interventions
    )


def message_files(page: str) -> dict[str, str]:
    """Return each language's messages: those that are in the page or in a script of its own or of the served page."""
    texts = "".join([unescape(page), *(path.read_text(encoding="utf-8") for path in WEB.rglob("*.js"))])

    def is_used(message: str) -> bool:
        return any(json.dumps(message, ensure_ascii=is_ascii)[1:-1] in texts for is_ascii in (True, False))

    return {
        f"messages.{language}.js": js_constants_module({"MESSAGES": used_messages(language, is_used)})
        for language in LANGUAGES
        if language != ENGLISH
    }


def used_messages(language: str, is_used: Callable[[str], bool]) -> dict[str, Any]:
    """Return a language's messages that are used, and how it counts."""
    return {name: text for name, text in messages_for_js(language).items() if not name or is_used(name)}


def drawn_part(view: View) -> View:
    """Return the view with those panels that the page without a server draws, and the lists that these follow."""
    if view.name not in (*DRAWN_VIEWS, "overview"):
        return replace(view, panels=(), fields=(), controls=())
    panels = tuple(panel for panel in view.panels if panel.template or panel.kind in DRAWN_KINDS)
    fields, controls = (
        tuple(f for f in names if getattr(f, "name", f) not in UNUSED) for names in (view.fields, view.controls)
    )
    return replace(view, panels=panels, fields=fields, controls=controls)


UNUSED = ("head_score", "first_token", "residual_depth")  # fields of panels that it does not draw


def figure_templates() -> dict[str, dict[str, Any]]:
    """Return the declared figures of the views, by element id."""
    panels = [(view, panel) for view in VIEWS if view.name in DRAWN_VIEWS for panel in view.panels if panel.template]
    return {element_id(view.name, panel.name): panel.template.as_dict() for view, panel in panels}


def pack_view(view: View, configs: Mapping[str, ModelConfig]) -> dict[str, Any]:
    """Return what the page needs to know of a view: its description, its lists, and its panels.

    Args:
        configs: of the models, by name.
    """
    return {
        "description": view.description,
        "controls": view.select_controls,
        "panels": [pack_panel(panel, configs) for panel in view.panels],
    }


def pack_panel(panel: Panel, configs: Mapping[str, ModelConfig]) -> dict[str, Any]:
    """Return what a panel is, and what is declared of its verification and of the number at a point."""
    packed = {name: getattr(panel, name) for name in ("name", "width", "title", "heading", "kind", "height")}
    if isinstance(panel.verify, TapVerifier):
        names = {model: panel.verify.expand_templates(config) for model, config in configs.items()}
        packed["verify"] = {"kind": panel.verify.kind, "names": names}
        if panel.verify.against:
            packed["verify"]["against"] = panel.verify.against[0]
    if isinstance(panel.inspect, CapturedCellInspector):
        packed["inspect"] = asdict(panel.inspect)
    return packed


def read_config(checkpoint: str) -> ModelConfig:
    """Return the config of a bundled checkpoint, which the page must be able to run."""
    file = find_checkpoint(checkpoint) / "config.json"
    config = ModelConfig.from_dict(json.loads(file.read_text(encoding="utf-8")))
    assert is_run_in_browser(config), file
    return config


def is_run_in_browser(config: ModelConfig) -> bool:
    """Return whether `web/static/in_browser/transformer_lm.js` can run a model."""
    plain = ModelConfig(**{name: getattr(config, name) for name in FIELDS_IN_BROWSER})
    return plain == config and config.position in ("rope", "sinusoidal", "none") and config.ffn in ("swiglu", "relu")


FIELDS_IN_BROWSER = (  # of a config; the model of the page has the defaults of all others
    *("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff", "norm", "norm_eps", "position"),
    *("rope_theta", "ffn", "bias", "tie_embeddings", "scale_embeddings", "dropout", "attention_dropout"),
)


def pack_formulas(config: ModelConfig) -> dict[str, Any]:
    """Return each captured value's formula by name; "{layer}" stands for a layer and "{before}" for the one before."""
    names = [name for name in tap_shapes(config, 1) if not name.startswith("blocks.") or re.match(r"blocks\.1\.", name)]
    packed = {name: pack_formula(get_formula(config, name)) for name in [*names, "blocks.0.resid_pre"]}
    text = re.sub(r"blocks\.1\.", "blocks.{layer}.", json.dumps(packed))
    text = re.sub(r"blocks\.0\.(?!resid_pre\": )", "blocks.{before}.", text)
    return json.loads(text)


def pack_formula(formula: Any) -> dict[str, Any]:
    """Return a formula as data: its class as "formula", and its attributes, its line of code as text."""
    packed = {"formula": type(formula).__name__.removesuffix("Formula"), "source": str(formula.source)}
    for name in set(formula.__dataclass_fields__) - {"source", "layer"}:
        if (value := getattr(formula, name)) is not None:
            packed[name] = pack_formula(value) if hasattr(value, "calculate") else value
    return dict(sorted(packed.items()))


def view_codes(config: ModelConfig) -> dict[str, str]:
    """Return the model's code that each view shows; a model's layers have the same."""
    with torch.device("meta"):
        lm = TransformerLM(config)
    views = [view for view in VIEWS if view.name in (*DRAWN_VIEWS, "overview")]
    return {view.name: mark_line(model_code(lm, 0, view.code), view.code_lines) for view in views}


# The texts of formulas, by what they are of
FORMULA_TEXTS = {
    "comparisons": COMPARISON_TEXTS,
    "elements": ELEMENTS,
    "linear": [formulas.WITHOUT_BIAS, formulas.WITH_BIAS],
    "activations": formulas.ACTIVATION_FORMULAS,
    "norms": {kind: formulas.NORM_FORMULAS[kind, kind == "layernorm"] for kind in ("rmsnorm", "layernorm")},
    "rotations": ROTATION_FORMULAS,
    "embeddings": [embedding.EMBEDDING_FORMULAS[kind] for kind in ((False, False), (True, True))],
}


def pack_choice(name: str) -> dict[str, Any]:
    """Return a list's title and, where they are always the same, its options."""
    if name in TITLES:
        return {"title": TITLES[name], "options": []}
    return {"title": find_field(name).label, "options": list(find_field(name).texts.items())}


def page_html(catalog: ModelCatalog) -> str:
    """Return the page."""
    static, own = f"{UP}explorer/web/static/", f"{UP}explorer/web/without_server/"
    imports = {
        f"{static}server_connection.js": f"{own}answers.js",
        f"{static}shared_constants.js": "./shared_constants.js",
        f"{own}page_data.js": "./page_data.js",
        **{f"{static}messages.{tag}.js": f"./messages.{tag}.js" for tag in LANGUAGES if tag != ENGLISH},
        **{f"{own}lessons.{tag}.js": f"./lessons.{tag}.js" for tag in LANGUAGES},
    }
    sheets = [*LAYOUT_SHEETS, *sorted(WEB.glob("widgets/*/*.css")), WEB / "without_server" / "controls.css"]
    styles = "\n".join(f'<link rel="stylesheet" href="{UP}{sheet.relative_to(ROOT).as_posix()}">' for sheet in sheets)
    hidden = ", ".join(f"#{name}" for name in HIDDEN)
    return HTML.format(
        title=escape(TITLE),
        imports=json.dumps({"imports": imports}, indent=2),
        styles=styles,
        preloads="\n".join(f'<link rel="modulepreload" href="{url}">' for url in preloaded_urls(imports)),
        colours=theme_css() + css_colours() + f"{hidden} {{ display: none !important; }}",
        body=layout_html(catalog),
        start=f"{own}start.js",
    )


IMPORTED = re.compile(r"""^(?:import|export)\b[^"';]*"(\.[^"]+\.js)";$""", re.MULTILINE)


def preloaded_urls(replacements: dict[str, str]) -> list[str]:
    """Return the URLs of the scripts that the page begins with, which it would otherwise find one in another.

    Args:
        replacements: URL by that of a script in whose place it comes.
    """
    urls = [f"{UP}explorer/web/without_server/start.js", f"{UP}explorer/web/widgets/figure/whole_model.js"]
    for url in urls:
        file = TARGET / url
        for path in IMPORTED.findall(file.read_text(encoding="utf-8")) if file.parent != TARGET else ():
            imported = f"{UP}{(file.parent / path).resolve().relative_to(ROOT).as_posix()}"
            if (imported := replacements.get(imported, imported)) not in urls:
                urls.append(imported)
    return urls


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
{preloads}
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
    """Return the fonts and the CSS variables that Gradio has on the served page."""

    def rule(selector: str, theme: Theme) -> str:
        values = "".join(f" --{name.replace('_', '-')}: {getattr(theme, field)};" for name, field in FIELDS.items())
        return f"{selector} {{{values} }}\n"

    local = [gr.themes.LocalFont(fonts[0], weights=FONT_WEIGHTS) for fonts in (SANS_FONTS, MONO_FONTS)]
    fonts = re.sub(r"static/fonts/\w+/", "", "".join(font.stylesheet()["css"] for font in local))
    return fonts + rule(":root", LIGHT) + rule(".dark", DARK)


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
        box = f'<textarea rows="1" placeholder="{escape(props["placeholder"])}"></textarea>'
        return f'<div{elem_id} class="block"><label><span>{label}</span>{box}</label></div>'
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


def write_plotly(bundle: Path, target: Path = TARGET):
    """Write plotly.js beside the page, from its bundle of bars, lines and heatmaps (plotly.js-cartesian-dist-min)."""
    (target / PLOTLY).write_text(unwrap_plotly(bundle.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_static_page()
    for path in sys.argv[1:]:
        write_plotly(Path(path))
