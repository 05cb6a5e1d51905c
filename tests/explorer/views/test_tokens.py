import itertools
import json
from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from explorer.analysis.embedding import nearest_tokens, principal_components, residual_at_depth
from explorer.analysis.next_token import actual_token_ranks, entropy, surprisal
from explorer.explain.notation import format_number, format_percent, format_six_digits, quote_token
from explorer.state.selection import Selection
from explorer.views import tokens
from explorer.views.shared_plots import position_vector_map
from explorer.views.style import SELECTED, label
from explorer.views.tokens import token_table
from model.tokenizer import MergeRules
from tests.subtest_loops import each_style, subtest_each

QUERY = 9


def strip_invisible_marks(text: str) -> str:
    """Return a label or cell text without its invisible marks."""
    return text.strip("\u2007\u2068\u2069")


def alt_text(figure) -> str:
    return figure.layout.meta["alt"]


@each_style
def test_table_has_numbers_of_every_token(trace):
    heatmap = token_table.draw_token_table(trace, QUERY).data[0]
    bits, expected, places = surprisal(trace), entropy(trace), actual_token_ranks(trace)
    for i, row in enumerate(heatmap.text):
        position, token, token_id, in_hex, *numbers = map(strip_invisible_marks, row)
        assert (int(position), int(token_id)) == (i, trace.token_ids[i])
        assert token == strip_invisible_marks(label(trace.tokens[i]))
        assert bytes.fromhex(in_hex) == trace.token_bytes[trace.token_ids[i]]
        if i:
            assert numbers == [f"{bits[i]:.2f}", f"{expected[i]:.2f}", f"{places[i]:.0f}"]
            assert_allclose(heatmap.z[i, 4:], [bits[i], expected[i], np.log2(places[i])], rtol=1e-6)
        else:
            assert numbers == ["–"] * 3 and not heatmap.z[i].any()


@each_style
def test_table_click_selects_token(trace):
    figure = token_table.draw_token_table(trace, QUERY)
    assert_array_equal(figure.data[0].customdata, np.arange(12)[:, None].repeat(7, axis=1))
    assert not np.isnan(figure.data[0].z).any()  # an empty cell could not be clicked
    assert [(shape.y0, shape.y1) for shape in figure.layout.shapes] == [(8.5, 9.5)]


@subtest_each(
    "length, query, shown",
    [(3, 1, range(3)), (20, 19, range(20)), (32, 0, range(20)), (32, 15, range(5, 25)), (32, 31, range(12, 32))],
)
def test_long_table_shows_rows_around_query(capture_trace, length, query, shown):
    assert token_table.table_rows(length, query) == shown
    heatmap = token_table.draw_token_table(capture_trace("rope", length), query).data[0]
    assert [int(strip_invisible_marks(row[0])) for row in heatmap.text] == list(shown)


@subtest_each("position", range(12))
def test_merge_tree_rows_differ_by_one_merge(rope_trace, position):
    figure = token_table.merge_tree(rope_trace, position)
    token = rope_trace.token_bytes[rope_trace.token_ids[position]]
    rows = {}
    boxes, words = figure.data
    for level, start, length, text in zip(boxes.y, boxes.base, boxes.x, words.text, strict=True):
        rows.setdefault(level, []).append((start, start + length, strip_invisible_marks(text)))
    assert [len(row) for row in rows.values()] == list(range(len(token), 0, -1))
    for row in rows.values():
        edges = [0, *(end for _, end, _ in row)]
        assert [(start, end) for start, end, _ in row] == list(itertools.pairwise(edges))
        assert edges[-1] == len(token)
    assert strip_invisible_marks(label(token.decode())) == rows[len(token) - 1][0][2]
    merged = [level for level, text in zip(boxes.y, boxes.text, strict=True) if "→" in text]
    assert merged == list(range(1, len(token)))  # one a row
    assert [color == token_table.TINT for color in boxes.marker.color] == ["→" in text for text in boxes.text]
    if len(token) > 1:
        assert figure.layout.yaxis.ticktext[-1] == f"id {rope_trace.token_ids[position]}"


def tokenizer_fields(tokenizer, merged_tokens: tuple[bytes, ...]) -> dict:
    """Return the trace fields of a tokenizer whose merges made these tokens."""
    tokens = (*tokenizer.bytes_of_ids[:256], *merged_tokens)
    return {"token_bytes": tokens, "merge_rules": MergeRules({token: i for i, token in enumerate(tokens)})}


def test_partial_characters_are_written_in_hexadecimal(tiny_tokenizer, rope_trace):
    moon = "🌙".encode()
    merged_tokens = moon[:2], moon[:3], moon
    trace = replace(rope_trace, **tokenizer_fields(tiny_tokenizer, merged_tokens), token_ids=(258,))
    figure = token_table.merge_tree(trace, 0)
    assert list(map(strip_invisible_marks, figure.data[1].text)) == [
        *(r"\xf0", r"\x9f", r"\x8c", r"\x99"),
        *(r"\xf0\x9f", r"\x8c", r"\x99"),
        *(r"\xf0\x9f\x8c", r"\x99"),
        "🌙",
    ]
    assert r"“\xf0” + “\x9f” (id 256); “\xf0\x9f” + “\x8c” (id 257)" in alt_text(figure)


def test_pieces_are_escaped(rope_trace, tiny_tokenizer):
    hostile = b"<b>", b"<b>&", b"<b>&l", b"<b>&lt"
    trace = replace(rope_trace, **tokenizer_fields(tiny_tokenizer, (b"<b", *hostile)), token_ids=(260,) * 12)
    data = json.loads(token_table.merge_tree(trace, 0).to_json())["data"]
    for text in data[0]["text"] + data[1]["text"]:
        assert "<" not in text.replace("<br>", "")
        assert "&l" not in text.replace("&lt;", "")


def test_token_without_merges_has_a_message(rope_trace):
    special = replace(rope_trace, token_ids=(299, 120))
    assert "special token" in token_table.merge_tree(special, 0).layout.annotations[0].text
    assert "single byte" in token_table.merge_tree(special, 1).layout.annotations[0].text
    assert alt_text(token_table.merge_tree(special, 1)) == "No merge built “x”."
    assert token_table.format_hex(special, 299) == "none"
    assert not token_table.merge_tree(replace(rope_trace, token_bytes=()), QUERY).data[0].x


@each_style
def test_vector_bars_equal_captured_embedding(trace):
    figure = tokens.vector_bars(trace, QUERY, dim=5)
    bars = [bar for bar in figure.data if bar.marker.color != SELECTED]
    assert_allclose(bars[-1].y, trace["embed"][QUERY], atol=1e-6)
    assert len(bars) == (3 if "position_embed" in trace else 1)
    if len(bars) == 3:
        assert_allclose(bars[0].y + bars[1].y, bars[2].y, atol=1e-6)
        ranges = {axis.range for axis in (figure.layout.yaxis, figure.layout.yaxis2, figure.layout.yaxis3)}
        assert len(ranges) == 1  # they compare
    chosen = [bar for bar in figure.data if bar.marker.color == SELECTED]
    assert [(bar.x[0], bar.y[0]) for bar in chosen] == [(5, bar.y[5]) for bar in bars]


@each_style
def test_nearest_tokens_have_their_cosines(trace):
    ids, cosines = nearest_tokens(trace, trace.token_ids[QUERY], 15)
    figure = tokens.nearest_tokens_bars(trace, QUERY)
    assert_array_equal(figure.data[0].x, cosines)
    assert list(figure.layout.yaxis.ticktext) == [label(trace.vocabulary[i]) for i in ids]
    assert format_number(cosines[0]) in alt_text(figure)


@each_style
@subtest_each("depth, hide_first", [(0, False), (1, True), (2, False)])
def test_pca_plot_shows_principal_components(trace, depth, hide_first):
    figure = tokens.pca_plot(trace, depth, QUERY, hide_first)
    components = principal_components(residual_at_depth(trace, depth)[int(hide_first) :])
    points = figure.data[0]
    assert_allclose(np.stack([points.x, points.y], axis=1), components.points)
    assert list(points.customdata) == list(range(int(hide_first), 12))
    assert [i for i, color in zip(points.customdata, points.marker.color, strict=True) if color == SELECTED] == [QUERY]
    assert f"{components.shares[0]:.0%} of the variance" in figure.layout.xaxis.title.text


def test_labels_do_not_overlap():
    points = np.array([[0, 0], [0, 0], [1, 1], [0.001, 0.001], [0, 1]], float)
    assert tokens.readable_labels(points, [5] * 5, chosen_index=1) == {1, 2, 4}
    assert tokens.readable_labels(points[:1], [3], chosen_index=0) == {0}
    close = np.array([[0, 0], [0, 0.04], [1, 1]], float)  # the second point lies under the first one's label
    assert tokens.readable_labels(close, [5] * 3, chosen_index=2) == {1, 2}
    assert 0 in tokens.readable_labels(close, [5] * 3, chosen_index=0)
    assert tokens.readable_labels(np.zeros((3, 2)), [1, 1, 1], chosen_index=-1) == {0}


@subtest_each("style", ["gpt", "learned"])
def test_position_map_shows_added_vectors(capture_trace, style):
    trace = capture_trace(style)
    heatmap = position_vector_map(trace, QUERY, dim=3).data[0]
    assert_array_equal(heatmap.z, trace["position_embed"])
    assert heatmap.zmin == -heatmap.zmax == -np.abs(heatmap.z).max()


@subtest_each(
    "style, symbols",
    [
        ("rope", "embedding[5] = row[5] = "),
        ("gpt", "embedding[5] = row[5] + position[5] = "),
        ("learned", "embedding[5] = row[5] · √D + position[5] = "),
        ("grouped", "embedding[5] = row[5] · 3 = "),
    ],
)
def test_formula_derives_embedding(capture_trace, style, symbols):
    trace = capture_trace(style)
    formula = tokens.VIEW.formula(trace, Selection(query=QUERY, dim=5))
    assert symbols in formula
    element = format_six_digits(trace["embed"][QUERY, 5])
    assert f"= {element}   recomputed in all {trace.config.d_model} dimensions, off by " in formula
    assert f"→ id {trace.token_ids[QUERY]} → row" in formula
    assert (
        f"= {format_six_digits(surprisal(trace)[QUERY])} bits, rank {actual_token_ranks(trace)[QUERY]:.0f} of 300"
        in formula
    )
    assert "nothing predicted it" in tokens.VIEW.formula(trace, Selection(query=0))


@each_style
def test_panels_draw_selection(trace):
    panels = {panel.name: panel.draw for panel in tokens.VIEW.panels}
    selection = Selection(query=QUERY, dim=5, residual_depth=2, first_token="hidden")
    assert panels["table"](trace, selection) == token_table.draw_token_table(trace, QUERY)
    assert panels["merges"](trace, selection) == token_table.merge_tree(trace, QUERY)
    assert panels["vector"](trace, selection) == tokens.vector_bars(trace, QUERY, 5)
    assert panels["nearest"](trace, selection) == tokens.nearest_tokens_bars(trace, QUERY)
    assert panels["spread"](trace, selection) == tokens.pca_plot(trace, 2, QUERY, hide_first=True)


@each_style
def test_sentence_names_expected_tokens(trace):
    logits = trace["logits"].astype(np.float64)
    probabilities = np.exp(logits - logits.max(-1, keepdims=True))
    probabilities /= probabilities.sum(-1, keepdims=True)
    own = [probabilities[i, token_id] for i, token_id in enumerate(trace.token_ids[1:])]  # of tokens 1, 2, …
    least = 1 + int(np.argmin(own))
    for position in range(1, len(trace)):
        first, second = np.argsort(-probabilities[position - 1], kind="stable")[:2]
        sentence, actual = tokens.tokens_sentence(trace, Selection(query=position)), trace.token_ids[position]
        shares = probabilities[position - 1]
        named = {
            token_id: f"{quote_token(trace.vocabulary[token_id])} {format_percent(shares[token_id])}"
            for token_id in (first, second, actual)
        }
        assert sentence.startswith(f"After {quote_token(trace.tokens[position - 1])} the model expected {named[first]}")
        assert all(name in sentence for name in named.values())
        assert sentence.count("%") == len(named)
    named = f"{quote_token(trace.tokens[least])} least, with {format_percent(own[least - 1])}."
    assert f"of the others the model expected {named}" in tokens.tokens_sentence(trace, Selection(query=0))
