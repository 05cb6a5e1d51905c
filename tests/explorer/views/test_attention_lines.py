import numpy as np

from explorer.views.attention.patterns import MAX_LINE_TOKENS, MIN_DRAWN_WEIGHT, attention_lines
from explorer.views.style import SELECTED
from tests.subtest_loops import each_style


@each_style
def test_lines_show_weights_above_threshold(trace):
    weights = trace["blocks.1.attn.pattern"][2]
    strokes = [t for t in attention_lines(trace, 1, 2, query=7).data if t.mode == "lines"]
    ends = {(int(q), int(k)) for t in strokes for q, k in np.reshape(t.y, (-1, 3))[:, :2]}
    assert ends == set(zip(*np.nonzero(weights >= MIN_DRAWN_WEIGHT), strict=True))
    chosen = {(int(q), int(k)) for t in strokes if t.line.color == SELECTED for q, k in np.reshape(t.y, (-1, 3))[:, :2]}
    assert chosen == {pair for pair in ends if pair[0] == 7}
    for stroke in strokes:
        for q, k in np.reshape(stroke.y, (-1, 3))[:, :2].astype(int):
            assert stroke.opacity <= weights[q, k] + 1e-6 < stroke.opacity + 0.17


def test_long_run_shows_lines_around_query(capture_trace, monkeypatch):
    monkeypatch.setattr("explorer.views.attention.patterns.MAX_LINE_TOKENS", 8)
    trace = capture_trace("rope", 32)
    for query, token_range in ((0, range(0, 8)), (20, range(15, 23)), (31, range(24, 32))):
        figure = attention_lines(trace, 0, 0, query)
        keys = figure.data[-1]
        assert list(keys.y) == [key for _, key in keys.customdata] == list(token_range) and query in token_range
        assert figure.layout.xaxis.title.text == f"tokens {token_range[0]} to {token_range[-1]} of 32"
    assert MAX_LINE_TOKENS > 8


def test_chosen_query_and_key_are_marked(rope_trace):
    for dots, chosen in zip(attention_lines(rope_trace, 1, 2, query=7, key=3).data[-2:], (7, 3), strict=True):
        assert [position for position, color in zip(dots.y, dots.marker.color, strict=True) if color == SELECTED] == [
            chosen
        ]


def test_hover_texts_give_weights_to_chosen_token(rope_trace):
    weights = rope_trace["blocks.1.attn.pattern"][2]
    queries, keys = attention_lines(rope_trace, 1, 2, query=7, key=3).data[-2:]
    for i, texts in enumerate(zip(queries.hovertext, keys.hovertext, strict=True)):
        for (query, key), text in zip(((i, 3), (7, i)), texts, strict=True):
            seen = f"from query {query} to key {key}: weight {weights[query, key]:.6g}"
            assert text.endswith(seen if key <= query else "not seen: after the query")
