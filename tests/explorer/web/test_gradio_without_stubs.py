"""Import of Gradio without writing stub files beside the source of components."""

import importlib.util
import inspect
import sys
from pathlib import Path

import gradio as gr

import explorer.web  # noqa: F401


def test_no_stub_is_written_beside_a_widget(tmp_path, monkeypatch):
    source = tmp_path / "widget.py"
    source.write_text("import gradio as gr\n\n\nclass Widget(gr.HTML):\n    EVENTS = ['ring']\n")
    spec = importlib.util.spec_from_file_location("widget", source)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "widget", module)
    spec.loader.exec_module(module)
    assert callable(module.Widget(render=False).ring)
    assert [path.name for path in tmp_path.glob("*.py*")] == ["widget.py"]


def test_a_components_source_is_known_to_whoever_else_asks():
    assert Path(inspect.getfile(gr.HTML)).name == "html.py"
