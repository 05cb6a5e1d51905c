"""Clicked cells of every panel's heatmaps: the derivation's value is the value that is drawn."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from explorer.analysis.attention import PATTERNS
from explorer.analysis.head_scores import HEAD_SCORES
from explorer.analysis.logit_lens import LENSES
from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint
from explorer.explain.notation import format_cell_number, format_number, format_six_digits
from explorer.explain.source_code import ROOT
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.compare import LOSS_ROW
from model.config import ModelConfig
from model.transformer_lm import TransformerLM
from tests.panels import PANELS, capture_panel_run, each_panel_and_style, shows, subject
from tests.sample_models import STYLES, capture_all_kinds_edited_style, capture_stream_edited_style
from tests.subtest_loops import each_style, subtest_each

PATTERN_PANELS = {"attention-pattern", "positions-pattern_change", "experiments-pattern_change"}  # query by key
TOLERANCE = 2e-4  # relative to the drawn value: figures compute some values in float32


def make_selections(name: str, trace: Trace) -> list[Selection]:
    """Return selections of two cells, with each choice that changes the panel's figure."""
    last = len(trace) - 1
    choices = {
        "attention-pattern": [{"pattern": kind} for kind in PATTERNS],
        "attention-scores": [
            {"head_score": score, "first_token": first_token}
            for score in HEAD_SCORES
            for first_token in ("shown", "hidden")
        ],
        "prediction-lens": [{"lens": kind, "target": 3} for kind in LENSES],
        "prediction-heads": [{"rival": 0}, {"target": 2, "rival": 3}],
        "activations-heatmap": [{"tap": tap} for tap in trace.values],
    }.get(name, [{}, {}])
    cell_fields = [{"query": last, "key": last // 2}, {"layer": 1, "head": 2, "query": last // 2, "key": 0, "dim": 9}]
    return [
        Selection().replace(**choice, **cell_fields[i % 2]).clamp_to_trace(trace) for i, choice in enumerate(choices)
    ]


def draw_heatmaps(name: str, trace: Trace) -> list[tuple[Selection, go.Figure]]:
    """Draw a panel's heatmap of a run for each selection."""
    panel = PANELS[name][1]
    return [(selection, panel.draw(subject(panel, trace), selection)) for selection in make_selections(name, trace)]


def is_heatmap(name: str) -> bool:
    """Return whether a panel draws heatmaps, judged by its figure for the first run that it applies to."""
    run = next(run for run in (capture_panel_run(name, style) for style in STYLES) if shows(name, run))
    fig = PANELS[name][1].draw(subject(PANELS[name][1], run), make_selections(name, run)[0])
    return isinstance(fig, go.Figure) and any(
        plot_trace["type"] == "heatmap" for plot_trace in fig.to_plotly_json()["data"]
    )


HEATMAPS = [name for name, (_, panel) in PANELS.items() if panel.inspect and is_heatmap(name)]


def each_heatmap_and_style(lengths: Iterable[int] = (12,), every: int = 1) -> Callable:
    return each_panel_and_style(
        lengths, condition=lambda view, panel: f"{view.name}-{panel.name}" in HEATMAPS, every=every
    )


def cell_coordinates(values, axis, size: int) -> list[float]:
    """Return the coordinate that the browser sends for each of `size` cells (`positionOf` in figure.js)."""
    if values is None:
        return list(range(size))
    if len(values) == size + 1:  # edges of cells: their middles
        return list((np.array(values[:-1]) + values[1:]) / 2)
    if isinstance(values[0], str):
        return [(axis.categoryarray or values).index(value) for value in values]
    return [float(value) for value in values]


def iter_cells(fig: go.Figure):
    """Yield (z, text, clicked point) of cells at the corners and between."""
    for heatmap in fig.data:
        rows, columns = np.shape(heatmap.z)
        x_axis = fig.layout[(heatmap.xaxis or "x").replace("x", "xaxis")]
        x, y = cell_coordinates(heatmap.x, x_axis, columns), cell_coordinates(heatmap.y, fig.layout.yaxis, rows)
        for row in sorted({0, 1, rows // 2, rows - 1} & set(range(rows))):
            for column in sorted({0, 1, columns // 2, columns - 1} & set(range(columns))):
                text = None if heatmap.text is None else heatmap.text[row][column]
                yield float(heatmap.z[row][column]), text, ClickedPoint(x[column], y[row])


def colour_scale_value(name: str, selection: Selection, trace: Trace, value: float) -> float:
    """Return the value on the heatmap's colour scale, if that differs from the value itself."""
    if name == "positions-angles":
        return np.pi - (np.pi - value) % (2 * np.pi)
    if name == "prediction-lens" and selection.option("lens") == "rank":
        return np.log(trace.config.vocab_size / value)
    return value


def check_cells(name: str, trace: Trace, selection: Selection, fig: go.Figure):
    """Check that clicks on a drawn heatmap return recomputed values that equal the drawn ones."""
    for z, text, point in iter_cells(fig):
        derivation = PANELS[name][1].inspect(subject(PANELS[name][1], trace), selection, point)
        if derivation is None:
            has_no_number = name == "tokens-table" and (point.x < 7.2 or text.strip() == "–")  # columns of text
            has_no_number |= name == "compare-facts" and point.row < LOSS_ROW
            assert np.isnan(z) or has_no_number, (selection, point)
            continue
        if name == "compare-facts":  # its colour shows whether the runs differ
            values = [item.value for item in derivation] if isinstance(derivation, tuple) else [derivation.value]
            assert text == (
                format_number(*values)
                if len(values) == 1
                else "+" * (values[0] > values[1]) + format_number(np.subtract(*values))
            )
            continue
        scale = max(1.0, abs(derivation.value))
        assert np.isfinite(derivation.value)
        assert derivation.difference <= TOLERANCE * scale, (selection, point, derivation)
        if name == "attention-stages":  # colours compare within a row; the number is written
            assert text == format_cell_number(derivation.value)
        elif name == "tokens-table":
            assert float(text) == pytest.approx(derivation.value, abs=0.006)
        else:
            assert colour_scale_value(name, selection, trace, derivation.value) == pytest.approx(
                z, abs=TOLERANCE * scale
            )


@each_heatmap_and_style(lengths=[1, 12], every=3)
def test_clicked_cell_is_recomputed_to_drawn_value(name, style, length):
    trace = capture_panel_run(name, style, length)
    for selection, fig in draw_heatmaps(name, trace):
        check_cells(name, trace, selection, fig)


@pytest.mark.exhaustive
@each_heatmap_and_style(every=6)
def test_clicked_cell_in_edited_run_is_recomputed(name, style, length):
    for trace in (capture_stream_edited_style(style, length), capture_all_kinds_edited_style(style, length)):
        for selection, fig in draw_heatmaps(name, trace):
            check_cells(name, trace, selection, fig)


@pytest.fixture(scope="module")
def long_trace() -> Iterator[Trace]:
    """Return a run with more tokens and dimensions than any figure shows at once."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 1300, "context_length": 100, "d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 64}
    lm = TransformerLM(ModelConfig.llama_style(**sizes)).eval()
    yield capture(lm, [7 * i % 1300 for i in range(100)])
    del lm  # kept alive until here for its weights


@subtest_each(
    "name, place",
    product(
        ["attention-stages", "prediction-lens", "activations-heatmap", "tokens-table"],
        [{"query": 99, "key": 80, "dim": 1299}, {"query": 50, "key": 3}],
    ),
)
def test_partial_figure_explains_visible_cells(long_trace, name, place):
    selection = Selection().replace(tap="logits", lens="target", **place).clamp_to_trace(long_trace)
    check_cells(name, long_trace, selection, PANELS[name][1].draw(subject(PANELS[name][1], long_trace), selection))


@each_style
def test_head_scores_of_repeated_tokens_are_recomputed(lms, style):
    trace = capture(lms[style], [5, 6, 5, 5, 7, 6, 5, 9])
    for selection, fig in draw_heatmaps("attention-scores", trace):
        check_cells("attention-scores", trace, selection, fig)


@subtest_each("name", [*HEATMAPS, "attention-heads"])
def test_every_heatmap_explains_clicks(name):
    assert PANELS[name][1].inspect


@each_style
def test_small_head_figure_explains_its_head(trace):
    _, panel = PANELS["attention-heads"]
    derivation = panel.inspect(subject(panel, trace), Selection(), ClickedPoint(3, 7, layer=1, head=2))
    assert derivation.value == trace["blocks.1.attn.pattern"][2, 7, 3]
    assert derivation.name == "blocks.1.attn.pattern[2, 7, 3]"


@each_style
@subtest_each(
    "name, point, tap, index",
    [
        ("attention-row", ClickedPoint(3, 0.1), "blocks.1.attn.pattern", (2, 5, 3)),
        ("feed_forward-tokens", ClickedPoint(3, -0.1), "blocks.1.ffn.hidden", (3, 4)),
    ],
)
def test_bar_of_captured_values_explains_click(trace, name, point, tap, index):
    selection = Selection(layer=1, head=2, query=5, neuron=4)
    assert PANELS[name][1].inspect(subject(PANELS[name][1], trace), selection, point).value == trace[tap][index]


@each_panel_and_style(condition=lambda view, panel: bool(panel.inspect), every=3)
def test_point_outside_figure_is_refused(name, style, length):
    panel, trace = PANELS[name][1], capture_panel_run(name, style, length)
    selection = Selection().clamp_to_trace(trace)
    for x, y in ((10**6, 0), (0, 10**6), (-1, 0), (10**6, 10**6)):
        if (x, y) == (0, 10**6) and name not in HEATMAPS:
            continue  # the height of a point does not identify its bar
        if name in PATTERN_PANELS and (x, y) == (10**6, 0):
            assert panel.inspect(subject(panel, trace), selection, ClickedPoint(x, y)) is None  # after the query
            continue
        with pytest.raises(PointNotFoundError):
            panel.inspect(subject(panel, trace), selection, ClickedPoint(x, y))


@each_style
def test_derivation_text_contains_trace_values(trace):
    layer, head, query, key = 1, 2, 7, 3
    selection = Selection(layer=layer, head=head, query=query, key=key)
    derivation = PANELS["attention-stages"][1].inspect(
        subject(PANELS["attention-stages"][1], trace), selection, ClickedPoint(key, 1)
    )
    text = "\n".join(derivation.lines())
    suffix = "_rot" * (trace.config.position == "rope")
    q, k = (
        trace.head_value(f"blocks.1.attn.{name}{suffix}", head)[index] for name, index in (("q", query), ("k", key))
    )
    largest = int(np.abs(q.astype(float) * k).argmax())
    for value in (
        q[largest],
        k[largest],
        float(q.astype(float) @ k.astype(float)),
        trace["blocks.1.attn.scores"][head, query, key],
    ):
        assert format_six_digits(value) in text
    assert f"+ {len(q) - 3} more terms" in text
    assert f"blocks.1.attn.q{suffix}[2, 7], {len(q)} numbers" in text
    assert f"model/layers/attention.py:{derivation.source.line}  return (q / divisor) @ k" in text
    assert "layer 1 head 2, query “" in text and " (7) → key “" in text


@pytest.mark.exhaustive
@each_heatmap_and_style(every=6)
def test_derivation_quotes_its_source_line(name, style, length):
    trace = capture_panel_run(name, style, length)
    for selection, fig in draw_heatmaps(name, trace):
        for _, _, point in iter_cells(fig):
            result = PANELS[name][1].inspect(subject(PANELS[name][1], trace), selection, point)
            for derivation in result if isinstance(result, tuple) else (result,) if result else ():
                source = derivation.source
                lines = (ROOT / source.path).read_text("utf-8").splitlines()
                assert source.path.startswith("model/" if derivation.kind == "captured" else "explorer/")
                assert source.text == lines[source.line - 1].strip()


@each_style
def test_derivation_text_is_plain_for_hostile_tokens(trace):
    hostile = replace(trace, vocabulary=("\u202e\n<b>",) * len(trace.vocabulary))
    for name in ("attention-pattern", "prediction-lens", "tokens-table", "activations-heatmap"):
        selection = Selection(tap="logits").clamp_to_trace(hostile)
        point = ClickedPoint(11.0, 3.0) if name == "tokens-table" else ClickedPoint(1.0, 2.0)
        if derivation := PANELS[name][1].inspect(subject(PANELS[name][1], hostile), selection, point):
            assert not re.search("[\n\u202e]", "".join(derivation.lines()))


@each_style
def test_derivation_shows_difference_from_captured_value(trace):
    """A captured value that does not follow from its inputs differs from the recomputed one."""
    values = {**trace.values, "logits": trace["logits"] + 1}
    derivation = PANELS["activations-heatmap"][1].inspect(
        replace(trace, values=values), Selection(tap="logits"), ClickedPoint(3, 2)
    )
    assert derivation.difference == pytest.approx(1, abs=1e-4)
