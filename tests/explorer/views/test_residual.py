import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.residual import (
    find_outlier_dimensions,
    layernorm_mean,
    norm_statistics_in_layer,
    residual_norms,
    residual_stages,
    residual_stream,
    stage_similarities,
    sublayer_updates,
)
from explorer.errors import PointNotFoundError
from explorer.explain.notation import format_number, format_six_digits
from explorer.interventions import parse_interventions
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views.residual import VIEW
from explorer.views.residual.stream_plots import (
    norm_divisor_plot,
    norm_gain_lines,
    norm_input_output_plot,
    outlier_dimension_plot,
    stage_cosine_map,
    stream_norm_map,
    stream_norm_plot,
    update_cosine_plot,
)
from explorer.views.style import ATTENTION, FEED_FORWARD, NORM, RESIDUAL, position_labels
from tests import layouts
from tests.subtest_loops import each_style


@each_style
def test_norm_map_has_every_stage_and_token(trace):
    figure = stream_norm_map(trace, query=4)
    cells = figure.data[0]
    assert list(cells.x) == position_labels(trace.tokens)
    assert list(cells.y) == [stage.name for stage in residual_stages(trace)]
    assert_allclose(cells.z, np.sqrt((residual_stream(trace).astype(float) ** 2).sum(-1)), rtol=1e-5)
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(3.5, 4.5)]


@each_style
def test_stage_click_selects_its_layer(trace):
    is_post_norm = trace.config.norm_placement == "post"
    per_layer = len(layouts.SUMS[trace.config.norm_placement]) * (1 + is_post_norm)
    chosen = [0, *[0] * per_layer, *[1] * per_layer]
    assert_array_equal(np.array(stream_norm_map(trace).data[0].customdata)[:, 3], chosen)
    assert_array_equal(np.array(stage_cosine_map(trace, 3).data[0].customdata)[:, 0], chosen)
    assert_array_equal(np.array(outlier_dimension_plot(trace).data[0].customdata)[:, 0], chosen)
    assert list(update_cosine_plot(trace).data[0].customdata) == [0, 0, 1, 1]


def test_outlier_token_does_not_stretch_scale(rope_trace):
    plain = stream_norm_map(rope_trace).data[0]
    assert plain.zmax == np.max(plain.z) and "alike" not in plain.colorbar.title.text
    sink = rope_trace["blocks.1.resid_mid"].copy()
    sink[0] *= 1000
    heatmap = stream_norm_map(replace(rope_trace, values={**rope_trace.values, "blocks.1.resid_mid": sink})).data[0]
    assert heatmap.zmax < 3 * plain.zmax and np.max(heatmap.z) > 100 * plain.zmax
    assert "longer ones alike" in heatmap.colorbar.title.text


@each_style
def test_norm_plot_shows_stream_and_updates(trace):
    norm_values = residual_norms(trace)
    median, stream, updates = stream_norm_plot(trace, query=7).data
    assert_allclose(median.y, np.median(norm_values.stream, axis=1))
    assert_allclose(stream.y, norm_values.stream[:, 7])
    assert_allclose(updates.y, norm_values.updates[:, 7])
    sums = layouts.residual_sums(trace.config)
    assert list(stream.text) == layouts.stage_names(trace.config)
    assert list(updates.text) == ["0 attention", "0 feed-forward", "1 attention", "1 feed-forward"]
    x = np.array(updates.x)
    if len(sums) == len(x):
        assert_array_equal(x, stream.x[1:])
    else:  # two bars, left and right of their common addition
        assert_allclose(x.reshape(-1, 2).mean(1), stream.x[1:])
        assert (np.diff(x) >= updates.width).all()


@each_style
def test_sublayers_alternate_in_colour(trace):
    for bars in (stream_norm_plot(trace).data[2], update_cosine_plot(trace).data[0]):
        assert list(bars.marker.color) == [ATTENTION, FEED_FORWARD] * trace.config.num_layers


@each_style
def test_post_norm_title_says_before_its_norm(trace):
    is_post_norm = trace.config.norm_placement == "post"
    assert ("before its norm" in stream_norm_plot(trace).layout.yaxis.title.text) is is_post_norm


@each_style
def test_update_cosines_are_bars_from_minus_one_to_one(trace):
    figure = update_cosine_plot(trace, 7)
    assert_allclose(figure.data[0].y, sublayer_updates(trace, 7).cosines)
    assert tuple(figure.layout.yaxis.range) == (-1, 1)


def test_cosine_bar_text_gives_both_norms(rope_trace):
    taps = [f"blocks.1.{tap}" for tap in ("ffn.out", "resid_mid")]
    added, before = (format_number(np.linalg.norm(rope_trace[tap][5].astype(float))) for tap in taps)
    assert update_cosine_plot(rope_trace, 5).data[0].text[-1].endswith(f"length {added} onto a stream of {before}")


@each_style
def test_stage_map_scale_is_minus_one_to_one(trace):
    cells = stage_cosine_map(trace, 7).data[0]
    assert_allclose(cells.z, stage_similarities(trace, 7))
    assert (cells.zmin, cells.zmax) == (-1, 1)
    assert list(cells.x) == list(cells.y) == [stage.name for stage in residual_stages(trace)]


@each_style
def test_outlier_dimensions_are_drawn_by_stage(trace):
    outlier_values = find_outlier_dimensions(trace)
    cells = outlier_dimension_plot(trace).data[0]
    assert list(cells.x) == [str(dimension) for dimension in outlier_values.dimensions]
    assert_allclose(cells.z, outlier_values.ratios)
    assert cells.zmin == 0


@each_style
def test_divisor_plot_shows_scales_and_means(trace):
    has_layernorm = trace.config.norm == "layernorm"
    lines = norm_divisor_plot(trace, 1, 5).data
    expected = []
    for reading in norm_statistics_in_layer(trace, 1):
        expected += [reading.scales, reading.means] if has_layernorm else [reading.scales]
    assert len(lines) == len(expected)
    for line, values in zip(lines, expected, strict=True):
        assert list(line.x) == position_labels(trace.tokens)
        assert_allclose(line.y, values)
        assert line.line.color == (RESIDUAL if "mean" in line.name else NORM)


def test_replaced_norm_shows_own_divisors(lms, rope_trace):
    edits = parse_interventions("blocks.1.attn_norm@3-5*norm*none~blocks.1.ffn_norm@7-*norm*layernorm")
    changed = capture(lms["rope"], rope_trace.token_ids, edits)
    first, second, mean = norm_divisor_plot(changed, 1, 4).data
    x, mid = (changed[f"blocks.1.{name}"].astype(np.float64) for name in ("resid_pre", "resid_mid"))
    rms = [np.sqrt((vectors**2).mean(-1) + changed.config.norm_eps) for vectors in (x, mid)]
    assert (first.name, second.name, mean.name) == (
        "attn_norm: RMS / 1",
        "ffn_norm: RMS / √(var + ε)",
        "ffn_norm: mean",
    )
    assert_allclose(first.y, [*rms[0][:3], 1, 1, 1, *rms[0][6:]])
    deviation = np.sqrt(mid[7:].var(-1) + changed.config.norm_eps)
    assert_allclose(second.y, [*rms[1][:7], *deviation])
    assert_allclose(mean.y, [*[np.nan] * 7, *mid[7:].mean(-1)])
    with pytest.raises(PointNotFoundError, match="takes nothing off"):
        layernorm_mean(changed, "blocks.1.ffn_norm", 6)
    assert layernorm_mean(changed, "blocks.1.ffn_norm", 7).value == mean.y[7]


@each_style
def test_gains_are_sorted_and_keep_their_dimension(trace):
    for line, name in zip(norm_gain_lines(trace, 1).data, layouts.NORMS[trace.config.norm_placement], strict=True):
        weight = trace.weights[f"blocks.1.{name}.weight"]
        assert line.name == name
        assert_array_equal(line.y, np.sort(weight)[::-1])
        assert_array_equal(weight[line.customdata], line.y)


@each_style
def test_norm_input_and_output_share_one_scale(trace):
    figure = norm_input_output_plot(trace, 1, 5)
    names = [tap for norm, read in layouts.NORMS[trace.config.norm_placement].items() for tap in (read, norm)]
    for bars, name in zip(figure.data, names, strict=True):
        assert_array_equal(bars.y, trace[f"blocks.1.{name}"][5])
    others = [name for name in figure.layout if name.startswith("yaxis") and name != "yaxis"]
    assert len(others) == len(names) // 2 - 1
    assert all(figure.layout[name].matches == "y" for name in others)
    ends = [figure.layout[name].domain[1] for name in ("yaxis", *sorted(others))]
    assert ends == sorted(ends, reverse=True) and ends[0] == pytest.approx(1)  # the first to be applied on top


@each_style
def test_formula_has_divisor_of_each_norm(trace):
    is_post_norm = trace.config.norm_placement == "post"
    has_layernorm = trace.config.norm == "layernorm"
    formula = VIEW.formula(trace, Selection(layer=1, query=5))
    readings = norm_statistics_in_layer(trace, 1)
    for line, reading in zip(formula.splitlines()[1 : 1 + len(readings)], readings, strict=True):
        assert line.startswith(f"{reading.name.split('.')[-1]} of x = {reading.before.split('.')[-1]}: ")
        assert f"= {format_six_digits(reading.scales[5])}   recomputed, off by {format_number(reading.error)}" in line
        assert ("σ = √(var x + ε)" in line) is has_layernorm
        assert ("RMS = √(mean x² + ε)" in line) is not has_layernorm
    assert f"{len(layouts.residual_sums(trace.config))} sums at this token" in formula
    assert ("before each norm" in formula) is is_post_norm


@each_style
def test_sentence_gives_stream_norms_and_largest_update(trace):
    for query in (0, 7):
        words, updates = VIEW.sentence(trace, Selection(query=query)), sublayer_updates(trace, query)
        first = np.linalg.norm(trace["blocks.0.resid_pre"][query].astype(np.float64))
        assert f"from length {format_number(first)} to " in words
        sublayer, layer = re.search(r"the (\S+) of layer (\d+) adds most", words).groups()
        most = updates.norms[2 * int(layer) + (sublayer == "feed-forward")]
        assert most == updates.norms.max() and f"({format_number(most)})" in words
