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
    sent = json.loads(component.postprocess(drawn))
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
    json.loads(sent, parse_constant=pytest.fail)


def test_nothing_is_nothing(component):
    assert component.postprocess(None) == "null"


def test_what_a_click_selects_is_told_to_the_script(component):
    selects = re.search(r'data-selects="([^"]*)"', component.html_template)[1]
    assert json.loads(html.unescape(selects)) == {"x": "key"}
    assert "height:123px" in component.html_template
