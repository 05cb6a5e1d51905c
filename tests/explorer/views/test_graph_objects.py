"""Plain figures: same JSON as Plotly's own, and convertible to Plotly figures."""

import base64
import copy
import pickle

import numpy as np
import plotly.graph_objects
import pytest
from plotly.io.json import to_json_plotly

from explorer.views import graph_objects as go
from explorer.views.style import column_line
from tests.subtest_loops import subtest_each

LINE = {"color": "#123456", "width": 2}
VALUES = {
    "float32": np.arange(6, dtype=np.float32),
    "float64": np.linspace(0, 1, 6),
    "int64": np.arange(6) * 1000,
    "bool": np.arange(6) % 2 == 0,
    "text": np.array(["a", "b"] * 3),
    "objects": np.array(["a", 1, None] * 2, dtype=object),
    "a list": [1, 2.5, None],
    "a gap": np.array([1.0, np.nan]),
    "nothing": np.array([]),
    "a table": np.arange(6, dtype=np.float32).reshape(2, 3),
    "turned": np.arange(6, dtype=np.float32).reshape(2, 3).T,
}


def read(figure) -> dict:
    """Return the figure's content with typed arrays as lists of numbers of any width."""
    content = figure.to_plotly_json()
    content["layout"].pop("template", None)
    return unpack_arrays(content)


def unpack_arrays(value):
    if isinstance(value, dict) and "bdata" in value:
        array = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
        shape = [int(size) for size in value.get("shape", str(array.size)).split(",")]
        return [None if number != number else number for number in array.reshape(shape).ravel().tolist()] + shape
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: unpack_arrays(part) for name, part in value.items()}
    return [unpack_arrays(part) for part in value] if isinstance(value, list | tuple) else value


def make_both_figures(**trace) -> tuple[dict, dict]:
    plain = go.Figure(go.Scatter(**trace), {"meta": {"alt": ""}}, {})
    own = plotly.graph_objects.Figure(plotly.graph_objects.Scatter(**trace), {"meta": {"alt": ""}})
    return read(plain), read(own)


@subtest_each("name", VALUES)
def test_values_are_encoded_like_plotly(name):
    values = VALUES[name]
    plain, own = make_both_figures(
        customdata=values, marker={"size": 3, "color": values[:0] if len(values) == 0 else "red"}, x=None
    )
    assert plain == own
    assert to_json_plotly(plain)


MARKS = {
    "rectangle": lambda figure: figure.add_shape(type="rect", x0=0, x1=1, y0=2, y1=3, line=LINE),
    "annotations": lambda figure: figure.add_annotation(text="here", x=1, y=2, showarrow=False).add_annotation(
        text="there"
    ),
}


@subtest_each("name", MARKS)
def test_shapes_and_annotations_equal_plotly(name):
    mark = MARKS[name]
    layout = {"meta": {"alt": ""}, "shapes": [{"type": "line", "x0": 0, "x1": 1, "y0": 0, "y1": 1}]}
    plain = mark(go.Figure([go.Bar(y=[1, 2])], layout, {}))
    own = mark(plotly.graph_objects.Figure([plotly.graph_objects.Bar(y=[1, 2])], layout))
    assert read(plain) == read(own)
    assert len(layout["shapes"]) == 1


def test_figure_behaves_like_a_plotly_figure():
    figure = go.Figure(go.Heatmap(z=np.eye(2)), {"meta": {"alt": ""}, "bargap": 0.5}, {"layout": {"bargap": 0.1}})
    assert figure.layout.bargap == 0.5 and figure.data[0].type == "heatmap"
    assert figure.update_layout(width=300).layout.width == 300
    assert figure.layout.template.layout.bargap == 0.1
    with pytest.raises(ValueError, match="colour"):
        go.Figure(go.Bar(colour="red"), {}, {}).to_json()
    assert not hasattr(figure, "nonsense")


def test_heatmap_has_the_colours_of_the_template_unless_it_has_its_own():
    assert go.Heatmap(z=[[0]])["autocolorscale"] and not go.Heatmap(z=[[0]], colorscale="Blues")["autocolorscale"]


def test_shapes_can_be_added_after_layout_updates():
    figure = go.Figure(go.Bar(y=[1]), {"meta": {"alt": ""}}, {})
    figure.update_layout(width=300)
    figure.add_shape(**column_line(1)).add_annotation(text="here")
    assert (
        figure.layout.width == 300 and figure.layout.shapes[0].x0 == 1 and figure.layout.annotations[0].text == "here"
    )


def test_equal_figures_compare_equal():
    def figure(value: float) -> go.Figure:
        return go.Figure(go.Heatmap(z=np.full((2, 2), value)), {"meta": {"alt": ""}}, {})

    assert figure(1) == figure(1) != figure(2)
    assert pickle.loads(pickle.dumps(figure(1))) == copy.deepcopy(figure(1)) == figure(1)


def test_set_meta_adds_to_alt_text():
    assert go.Figure([], {"meta": {"alt": "a"}}, {}).set_meta(lines=3).to_plotly_json()["layout"] == {
        "meta": {"alt": "a", "lines": 3}
    }


def test_axis_range_is_a_list():
    layout = go.Figure([], {"xaxis": {"range": np.array([0.0, 5.0])}}, {}).to_plotly_json()["layout"]
    assert layout["xaxis"]["range"] == [0.0, 5.0]
