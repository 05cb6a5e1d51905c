import html
import json
import re

import numpy as np
import pytest

from explorer.views import attention
from explorer.views import graph_objects as go
from explorer.views.style import figure
from explorer.web.widgets.figure import PlotlyFigureWidget
from tests.subtest_loops import each_style


@each_style
def test_figure_is_sent_without_template(plotly_template_enabled, trace):
    heatmap = attention.pattern_heatmap(trace, 0, 0, query=3, key=1)
    data, layout = PlotlyFigureWidget.pack(heatmap)
    sent = {"data": json.loads(data), "layout": json.loads(layout)}
    whole = json.loads(heatmap.to_json())
    assert whole["layout"].pop("template")["layout"]
    assert not sent["layout"].pop("template", None)
    assert sent == whole


def test_packing_does_not_modify_figure():
    bars = figure(go.Bar(y=[1, 2]), alt="Two bars.")
    before = bars.to_json()
    PlotlyFigureWidget.pack(bars)
    assert bars.to_json() == before


def test_missing_values_are_valid_json():
    sent = PlotlyFigureWidget.pack(figure(go.Heatmap(z=np.array([[1, np.nan]], np.float32)), alt="A gap."))
    for part in sent:
        json.loads(part, parse_constant=pytest.fail)


def test_click_selection_is_sent_to_script():
    component = PlotlyFigureWidget(selects={"x": "key"}, height=123)
    selects = re.search(r'data-selects="([^"]*)"', component.html)[1]
    assert json.loads(html.unescape(selects)) == {"x": "key"}
    assert "height:123px" in component.html


@each_style
def test_selected_cell_does_not_change_data(trace):
    """The browser can then skip the data."""
    before, after = (PlotlyFigureWidget.pack(attention.pattern_heatmap(trace, 0, 0, query, 1)) for query in (3, 5))
    assert before[0] == after[0]
    assert before[1] != after[1]
