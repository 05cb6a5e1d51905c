"""The example in `explorer/views/README.md` is a working view."""

import re
from pathlib import Path

import pytest

from explorer.state.selection import Selection
from explorer.views.view import View

README = Path(__file__).parents[3] / "explorer" / "views" / "README.md"


@pytest.fixture(scope="module")
def example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return code


def test_the_example_draws_every_kind_of_model(example, trace):
    names = {}
    exec(compile(example, str(README), "exec"), names)
    view = names["VIEW"]
    assert isinstance(view, View) and view.is_applicable(trace)
    selection = Selection(layer=1, head=2, query=5).clamp_to_trace(trace)
    assert re.search(r"= \d", view.formula(trace, selection))
    for panel in view.panels:
        assert panel.draw(trace, selection).layout.meta["alt"]


def test_the_example_is_as_short_as_it_says(example):
    code = [line for line in example.splitlines() if line.strip() and not line.startswith(("import", "from", '"""'))]
    assert len(code) <= 35
