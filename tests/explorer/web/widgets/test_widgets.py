"""Properties common to all widgets: static templates, text as data, one script each."""

import html
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

from explorer.lessons.prompt_pairs import PROMPT_PAIRS
from explorer.web import widgets
from explorer.web.widgets.widget import Widget, fill_template

for module in pkgutil.iter_modules(widgets.__path__):
    importlib.import_module(f"explorer.web.widgets.{module.name}")
WIDGETS = sorted(Widget.__subclasses__(), key=lambda widget: widget.__name__)

every_widget = pytest.mark.parametrize("widget", WIDGETS, ids=lambda widget: widget.__name__)


def make_widget(widget: type[Widget]) -> Widget:
    """Return a widget with its required arguments."""
    values = {
        "selects": {},
        "functions": [lambda state: state],
        "presets": {},
        "checkpoints": [],
        "pairs": PROMPT_PAIRS,
        "walk": "attention",
        "height": 9,
        "min_width": 9,
    }
    return widget(**{name: value for name, value in values.items() if name in inspect.signature(widget).parameters})


def script_path(widget: type[Widget]) -> Path:
    folder = Path(inspect.getfile(widget)).parent
    return folder / f"{folder.name}.js"


@every_widget
def test_templates_are_static(widget):
    instance = make_widget(widget)
    for template in (instance.html_template, instance.css_template):
        assert not re.search(r"\$\{|\{\{|@children", template)


@pytest.mark.parametrize("said", ["<b>", '" onclick="x', "${1+1}", "{{value}}", "@children", "`", "\\", "&lt;", "’ü木"])
def test_words_of_another_language_are_text_in_a_template(said):
    placed = fill_template("{said}", said=said)
    assert not re.search(r"[<>\"'`$@{}\\]|&(?!#\d+;)", placed)
    assert html.unescape(placed) == said


@every_widget
def test_each_widget_has_its_own_script(widget):
    [served] = re.findall(r"gradio_api/file=([^\"]+)", make_widget(widget).js_on_load)
    script = script_path(widget).read_text(encoding="utf-8")
    assert Path(served).read_text(encoding="utf-8") == script
    assert len(re.findall(r"^export default function", script, re.MULTILINE)) == 1


@every_widget
def test_gradio_finds_the_events_that_a_widget_emits(widget):
    instance = make_widget(widget)
    emitted = re.findall(r"\bemit\.(\w+)", script_path(widget).read_text(encoding="utf-8"))
    assert set(emitted) == set(widget.EMITS)
    for event in widget.EMITS:
        assert callable(getattr(instance, event))


@every_widget
def test_values_pass_as_they_are_into_python(widget):
    """Gradio's own HTML component would convert them to text."""
    value = {"prompt": [1, 2], "<b>": None}
    assert make_widget(widget).preprocess(value) is value
