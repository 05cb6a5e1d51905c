"""Text is data: no value passes through a template, and no script makes markup of it."""

import html
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

from explorer.web import widgets
from explorer.web.assets import STATIC, plotly_script, shared_script
from explorer.web.widgets.widget import Widget, with_words

FOLDER = Path(widgets.__file__).parent
for module in pkgutil.iter_modules(widgets.__path__):
    importlib.import_module(f"explorer.web.widgets.{module.name}")
WIDGETS = sorted(Widget.__subclasses__(), key=lambda widget: widget.__name__)
SCRIPTS = sorted([*FOLDER.glob("*/*.js"), *STATIC.glob("*.js")])

every_widget = pytest.mark.parametrize("widget", WIDGETS, ids=lambda widget: widget.__name__)


def made(widget: type[Widget]) -> Widget:
    """A widget with the arguments it cannot do without."""
    values = {"selects": {}, "functions": [lambda asked: asked], "presets": {}, "checkpoints": []}
    return widget(**{name: value for name, value in values.items() if name in inspect.signature(widget).parameters})


@every_widget
def test_templates_are_static(widget):
    instance = made(widget)
    for template in (instance.html_template, instance.css_template):
        assert not re.search(r"\$\{|\{\{|@children", template)


@pytest.mark.parametrize("said", ["<b>", '" onclick="x', "${1+1}", "{{value}}", "@children", "`", "\\", "&lt;", "’ü木"])
def test_words_of_another_language_are_text_in_a_template(said):
    placed = with_words("{said}", said=said)
    assert not re.search(r"[<>\"'`$@{}\\]|&(?!#\d+;)", placed)
    assert html.unescape(placed) == said


@every_widget
def test_each_widget_has_its_own_script(widget):
    folder = Path(inspect.getfile(widget)).parent
    script = folder / f"{folder.name}.js"
    assert made(widget).js_on_load == script.read_text(encoding="utf-8")
    assert script in SCRIPTS


@every_widget
def test_values_pass_as_they_are_into_python(widget):
    """Gradio's own HTML component would turn them into text."""
    value = {"prompt": [1, 2], "<b>": None}
    assert made(widget).preprocess(value) is value


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_script_makes_markup_of_text(script):
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|\beval\(|new Function"
    assert not re.search(forbidden, script.read_text(encoding="utf-8"))


def test_shared_scripts_have_relative_addresses():
    """So that the app works below any path."""
    for tag in (shared_script(), plotly_script()):
        assert re.fullmatch(r'<script src="gradio_api/file=[^"]+\.js"></script>', tag)


def test_plotly_leaves_gradio_s_own_copy_alone():
    path = re.search(r"file=([^\"]+)", plotly_script())[1]
    source = Path(path).read_text(encoding="utf-8")
    assert "plotly.js v" in source[:1000] and "MIT license" in source[:1000]
    assert source.count("window.ExplorerPlotly=") == 1 and not re.search(r"window\.Plotly\s*=", source)
