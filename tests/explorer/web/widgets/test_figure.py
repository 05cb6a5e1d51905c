import html
import json
import re

import numpy as np
import pytest

from explorer.views import attention
from explorer.views import graph_objects as go
from explorer.views.style import figure
from explorer.web.widgets.figure import PlotlyFigureWidget


def test_the_figure_travels_without_its_template(with_template, trace):
    heatmap = attention.pattern_heatmap(trace, 0, 0, query=3, key=1)
    data, layout = PlotlyFigureWidget.pack(heatmap)
    sent = {"data": json.loads(data), "layout": json.loads(layout)}
    whole = json.loads(heatmap.to_json())
    assert whole["layout"].pop("template")["layout"]
    assert not sent["layout"].pop("template", None)
    assert sent == whole


def test_the_figure_itself_stays_as_it_was():
    bars = figure(go.Bar(y=[1, 2]), alt="Two bars.")
    before = bars.to_json()
    PlotlyFigureWidget.pack(bars)
    assert bars.to_json() == before


def test_gaps_are_json():
    sent = PlotlyFigureWidget.pack(figure(go.Heatmap(z=np.array([[1, np.nan]], np.float32)), alt="A gap."))
    for part in sent:
        json.loads(part, parse_constant=pytest.fail)


def test_what_a_click_selects_is_told_to_the_script():
    component = PlotlyFigureWidget(selects={"x": "key"}, height=123)
    selects = re.search(r'data-selects="([^"]*)"', component.html)[1]
    assert json.loads(html.unescape(selects)) == {"x": "key"}
    assert "height:123px" in component.html


def test_marking_another_cell_leaves_the_data_as_they_are(trace):
    """The browser can then skip the data."""
    before, after = (PlotlyFigureWidget.pack(attention.pattern_heatmap(trace, 0, 0, query, 1)) for query in (3, 5))
    assert before[0] == after[0]
    assert before[1] != after[1]
