from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.head_scores import HEAD_SCORES, chance_head_scores, head_scores
from explorer.explain.notation import format_cell_number, format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views.attention import head_score_map
from explorer.views.attention.patterns import MAX_STAGE_KEYS, attention_stages, score_by_dimension_bars
from explorer.views.labels import format_heading
from explorer.views.style import label, position_labels
from tests.sample_models import tokenizer
from tests.subtest_loops import each_style, subtest_each


@each_style
@subtest_each("name", HEAD_SCORES)
def test_map_has_every_head_score_and_frames_chosen_head(capture_trace, style, name):
    trace = capture_trace(style, 32)
    figure = head_score_map(trace, name, False, layer=1, head=2)
    assert_allclose(np.asarray(figure.data[0].z, dtype=float), head_scores(trace, name))
    assert figure.data[0].colorbar.title.text == HEAD_SCORES[name].title
    assert figure.layout.annotations[0].text.startswith(f"how much each head {HEAD_SCORES[name].description}")
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5)


def test_scores_within_chance_are_in_brackets(capture_trace):
    trace = capture_trace("rope", 32)
    figure = head_score_map(trace, "previous_token", False, 0, 0)
    scores, baseline = head_scores(trace, "previous_token"), chance_head_scores(trace, "previous_token")
    texts, hovers = np.array(figure.data[0].text), np.array(figure.data[0].hovertext)
    for layer, head in np.ndindex(scores.shape):
        score, within = scores[layer, head], baseline.quantiles[layer, head]
        assert texts[layer, head] == (f"{score:.2f}" if score > within else f"({score:.2f})")
        assert f"stay within {format_number(within)}" in hovers[layer, head].replace("<br>", " ")
    assert (
        f"scores {format_number(baseline.uniform_scores[0])} here. Measured at 31 tokens,"
        in figure.layout.xaxis.title.text
    )


@subtest_each("name", HEAD_SCORES)
def test_first_query_is_excluded_from_head_scores(capture_trace, name):
    trace = capture_trace("rope", 32)
    assert (
        "not at the first, which sees itself alone" in head_score_map(trace, name, False, 0, 0).layout.xaxis.title.text
    )
    other = trace["blocks.0.attn.pattern"].copy()
    other[:, 0, 0] = 0.25
    spoiled = replace(trace, values=trace.values | {"blocks.0.attn.pattern": other})
    assert_array_equal(head_scores(spoiled, name), head_scores(trace, name))


def test_spread_map_gives_score_of_uniform_attention(capture_trace):
    figure = head_score_map(capture_trace("rope", 32), "spread", False, 0, 0)
    assert "scores 1.00 here" in figure.layout.xaxis.title.text
    assert not any("(" in text for text in np.ravel(figure.data[0].text))


def test_map_without_repeated_tokens_has_a_message(capture_trace):
    figure = head_score_map(capture_trace("rope", 2), "induction", False, 0, 0)
    assert "no token of this prompt occurs twice" in figure.layout.annotations[-1].text
    assert "no token of this prompt occurs twice" in figure.layout.meta["alt"]


@each_style
def test_stages_show_chosen_and_heaviest_keys_in_text_order(capture_trace, style):
    trace = capture_trace(style, 32)
    query, key = 20, 9
    figure = attention_stages(trace, 1, 0, query, key)
    weights = trace["blocks.1.attn.pattern"][0, query]
    keys = [at for heatmap in figure.data for at in heatmap.x]
    hidden = style in ("local", "sandwich")  # their second layers see 8 tokens
    visible = [at for at in range(query + 1) if weights[at] > 0]
    heaviest = sorted((at for at in visible if at != key), key=lambda at: -weights[at])[: MAX_STAGE_KEYS - 2]
    assert keys == sorted({key, *heaviest, query + 1})  # and one that the mask hides
    ends = [figure.layout[heatmap.xaxis.replace("x", "xaxis")].domain for heatmap in figure.data]
    assert ends == sorted(ends) and all(left[1] < right[0] for left, right in pairwise(ends))
    heatmap = next(heatmap for heatmap in figure.data if key in heatmap.x)
    assert heatmap.xaxis == "x" and figure.layout.shapes[0].x0 == key - 0.5  # the frame is on the first axis
    later = max(at for at in keys if at <= query)
    last = next(heatmap for heatmap in figure.data if later in heatmap.x)
    column = list(last.x).index(later)
    assert last.hovertext[0][column].startswith(f"{position_labels(trace.tokens)[later]}: ")
    column = list(heatmap.x).index(key)
    assert all(row[column].startswith(f"{position_labels(trace.tokens)[key]}: ") for row in heatmap.hovertext)
    text = [row[column] for row in heatmap.text]
    score = trace["blocks.1.attn.scores"][0, query, key]
    if cap := trace.config.score_cap:
        assert heatmap.y[2] == f"capped = {cap} · tanh(score / {cap})"
        assert text.pop(2) == format_cell_number(cap * np.tanh(score / cap))
    assert (text[1], text[2]) == (format_cell_number(score), "−∞" if hidden else format_cell_number(score))
    assert text[3] == format_cell_number(weights[key])
    rest = sum(float(weights[other]) for other in range(32) if other not in keys)
    assert axis_title(figure) == (
        f"the chosen key and the heaviest (the {32 - len(keys)} others have {format_number(rest)} of the weight"
        " together)"
    )


def axis_title(figure):
    axes = (axis for name, axis in figure.layout.to_plotly_json().items() if name.startswith("xaxis"))
    (title,) = {axis["title"]["text"] for axis in axes} - {""}
    return title


@subtest_each("length, said", [(14, "key"), (15, "the chosen key and the heaviest (the 3 others have")])
def test_stages_title_counts_omitted_keys(capture_trace, length, said):
    text = axis_title(attention_stages(capture_trace("rope", length), 0, 0, length - 1, 0))
    assert text.startswith(said) and ("(" in text) is (length > 14)


def test_repeated_tokens_have_their_positions_in_stages_and_headings(lms):
    trace = capture(lms["rope"], (40, 41, 40, 42), tokenizer=tokenizer())
    twin, other, _twin, last = map(label, trace.tokens)
    assert attention_stages(trace, 0, 0, 3, 2).layout.xaxis.ticktext == (f"{twin} (0)", other, f"{twin} (2)", last)
    heading = format_heading("{query} → {key}", trace, Selection(query=2, key=0))
    assert heading == f"{quote_token(trace.tokens[0])} (2) → {quote_token(trace.tokens[0])} (0)"


@each_style
def test_masked_scores_are_minus_infinity(trace):
    heatmap = attention_stages(trace, 0, 1, query=3, key=3).data[0]
    masked = 2 + (trace.config.score_cap is not None)
    hidden = [cell == "−∞" for cell in heatmap.text[masked]]
    assert hidden == [key > 3 for key in heatmap.x]
    last = attention_stages(trace, 0, 1, query=len(trace) - 1, key=3).data[0]
    assert ("−∞" in last.text[masked]) != (last.y[masked] == "nothing to mask: the last query")
    assert all(float(cell) == 0 for cell, h in zip(heatmap.text[masked + 1], hidden, strict=True) if h)


@each_style
def test_dimension_bars_add_up_to_score(trace):
    bars = score_by_dimension_bars(trace, 1, 1, 8, 3).data[0]
    assert_array_equal(bars.x, np.arange(trace.config.d_head))
    assert np.sum(bars.y) == pytest.approx(trace["blocks.1.attn.scores"][1, 8, 3], abs=1e-5)


@subtest_each(
    "number, text",
    [
        (60.24, "60.2"),
        (-10.649, "−10.6"),
        (0.0123, "0.0123"),
        (-0.0123, "−0.012"),
        (0.0, "0"),
        (-1234.5, "−1234"),
        (-4.6e-4, "−0.0005"),
        (4.6e-5, "5e−5"),
    ],
)
def test_cells_have_three_digits_if_they_fit(number, text):
    assert format_cell_number(number) == text
