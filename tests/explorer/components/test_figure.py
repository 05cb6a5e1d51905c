import html
import json
import re

import numpy as np
import plotly.graph_objects as go
import pytest

from explorer.components.figure import Figure
from explorer.style import figure
from explorer.views import attention


@pytest.fixture(scope="module")
def component() -> Figure:
    return Figure(selects={"x": "key"}, height=123)


def test_the_figure_travels_without_its_template(component, trace):
    drawn = attention.pattern(trace, 0, 0, query=3, key=1)
    data, layout = component.postprocess(drawn).split("\n")
    sent = {"data": json.loads(data), "layout": json.loads(layout)}
    whole = json.loads(drawn.to_json())
    assert whole["layout"].pop("template")["layout"]
    assert not sent["layout"].pop("template", None)
    assert sent == whole


def test_the_figure_itself_stays_as_it_was(component):
    drawn = figure(go.Bar(y=[1, 2]), alt="Two bars.")
    before = drawn.to_json()
    component.postprocess(drawn)
    assert drawn.to_json() == before


def test_gaps_are_json(component):
    sent = component.postprocess(figure(go.Heatmap(z=np.array([[1, np.nan]], np.float32)), alt="A gap."))
    assert "NaN" not in sent
    for line in sent.split("\n"):
        json.loads(line, parse_constant=pytest.fail)


def test_nothing_is_nothing(component):
    assert component.postprocess(None) == "null"


def test_what_a_click_selects_is_told_to_the_script(component):
    selects = re.search(r'data-selects="([^"]*)"', component.html_template)[1]
    assert json.loads(html.unescape(selects)) == {"x": "key"}
    assert "height:123px" in component.html_template


def test_marking_another_cell_leaves_the_data_as_they_are(component, trace):
    """Which is what lets the browser skip them."""
    before, after = (component.postprocess(attention.pattern(trace, 0, 0, query, 1)) for query in (3, 5))
    assert before.split("\n")[0] == after.split("\n")[0]
    assert before != after


def test_line_breaks_in_a_text_break_no_line(component):
    sent = component.postprocess(figure(go.Scatter(x=[1], y=[1], text=["a\nb\u2028c"]), alt="A\npoint."))
    assert sent.count("\n") == 1
