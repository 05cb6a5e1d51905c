"""Properties common to all widgets: texts are escaped in their markup, and each has a function in its script."""

import html
import importlib
import inspect
import pkgutil
import re

from explorer.lessons.example_prompts import PROMPT_PAIRS
from explorer.web import widgets
from explorer.web.assets import WEB
from explorer.web.layout import StateComponent
from explorer.web.widgets import HtmlWidget, fill_template
from explorer.web.widgets.figure import PlotlyFigureWidget
from tests.subtest_loops import subtest_each

for module in pkgutil.iter_modules(widgets.__path__):
    importlib.import_module(f"explorer.web.widgets.{module.name}")
WIDGETS = sorted(HtmlWidget.__subclasses__(), key=lambda widget: widget.__name__)


def make_widget(widget: type[HtmlWidget], **options) -> HtmlWidget:
    """Return a widget with its required arguments."""
    values = {
        "selects": {},
        "presets": {},
        "checkpoints": [],
        "pairs": PROMPT_PAIRS,
        "walk": "attention",
        "field": "why",
        "question": "Why?",
        "height": 9,
        "min_width": 9,
    }
    known = {name: value for name, value in values.items() if name in inspect.signature(widget).parameters}
    return widget(**known, **options)


@subtest_each("said", ["<b>", '" onclick="x', "${1+1}", "{{value}}", "@children", "`", "\\", "&lt;", "’ü木"])
def test_texts_are_escaped_in_markup(said):
    title = re.search("<h2>(.*)</h2>", make_widget(PlotlyFigureWidget, title=said).markup)[1]
    for placed in (fill_template("{said}", said=said), title):
        assert not re.search(r"[<>\"'`$@{}\\]|&(?!#\d+;)", placed)
        assert html.unescape(placed) == said


def test_script_has_function_for_widget_kind():
    for widget in WIDGETS:
        markup = make_widget(widget, elem_id="place").markup
        kind, module = re.match(
            r'<div id="place" class="block" data-widget="(\w+)" data-module="([\w/]+)"', markup
        ).groups()
        function = re.sub("_(.)", lambda match: match[1].upper(), kind)
        script = (WEB / "widgets" / f"{module}.js").read_text(encoding="utf-8")
        assert re.search(rf"^export function {function}\(element\) {{", script, re.MULTILINE), widget
        assert ("data-lazy=" in markup.partition(">")[0]) is (widget.lazy is not None), widget


def test_widget_kinds_are_unique():
    kinds = [widget.kind for widget in WIDGETS]
    assert len(set(kinds)) == len(kinds) > 30


def test_values_pass_unchanged_through_state_components(page):
    """Gradio's own HTML component would convert them to text."""
    value = {"prompt": [1, 2], "<b>": None}
    for component in (page.layout.state, page.layout.update):
        assert isinstance(component, StateComponent)
        assert component.preprocess(value) is component.postprocess(value) is value
