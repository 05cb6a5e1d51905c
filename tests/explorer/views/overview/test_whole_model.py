"""The whole model's figure: terms add up; curves and open cells show captured values."""

from itertools import product

import numpy as np
import pytest

from explorer.analysis.next_token import next_token_ranking
from explorer.analysis.token_contributions import attribution_by_source
from explorer.explain.notation import escape_token, format_percent, quote_token, quote_word
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views.overview.whole_model import MAX_ROWS, draw_whole_model, fold_tokens, whole_model_sentence
from explorer.web.widgets.figure import WholeModelWidget
from tests import layouts
from tests.rendered_figures import contains_number
from tests.sample_models import (
    STYLES,
    capture_all_kinds_edited_style,
    capture_edited_style,
    capture_style,
    models,
    tokenizer,
)
from tests.subtest_loops import each_style, subtest_each

QUERY, KEY = 9, 4


def select(trace, **fields) -> Selection:
    return Selection().replace(**{"layer": 1, "head": 2, "query": QUERY, "key": KEY} | fields).clamp_to_trace(trace)


@subtest_each(
    "style, capture_run", product(STYLES, [capture_style, capture_edited_style, capture_all_kinds_edited_style])
)
def test_terms_add_up_to_logit(style, capture_run):
    trace = capture_run(style)
    for fields in ({}, {"target": 5, "rival": 2}, {"query": 0}):
        figure, selection = draw_whole_model(trace, select(trace, **fields)), select(trace, **fields)
        order = np.argsort(-(trace.baseline or trace)["logits"][selection.query], kind="stable")
        logits = trace["logits"][selection.query]
        logit = logits[order[selection.target - 1]] - (logits[order[selection.rival - 1]] if selection.rival else 0)
        assert figure.logit == pytest.approx(logit, abs=1e-4)
        assert sum(value for _kind, _label, value in figure.terms) == pytest.approx(
            logit, abs=5e-3
        )  # each has four decimals
        total = sum(effect for *_where, effect, _weight in figure.curves) + figure.rest[1]
        sources = [value for kind, _label, value in figure.terms if kind == "sources"]
        assert total == pytest.approx(sum(sources), abs=1e-4 * (len(figure.curves) + 1))


@subtest_each("style", STYLES)
def test_curve_widths_equal_norms_of_head_writes(style):
    trace = capture_style(style)
    curves = draw_whole_model(trace, select(trace)).curves
    assert curves and len({tuple(curve[:3]) for curve in curves}) == len(curves)
    for layer, head, key, norm, _effect, curve_weight in curves:
        block, d = f"blocks.{layer}.attn", trace.config.d_head
        values = trace[f"{block}.v"]
        value = values[head * len(values) // trace.config.num_heads, key].astype(float)
        written = trace.weights[f"{block}.o_proj.weight"][:, head * d : (head + 1) * d] @ value
        [added] = layouts.residual_contributions(trace, layer, "attn", written[None], QUERY)
        weight = trace[f"{block}.pattern"][head, QUERY, key]
        assert key < QUERY and curve_weight == pytest.approx(weight, abs=1e-4)
        assert norm == pytest.approx(weight * np.linalg.norm(added), abs=1e-4)


@subtest_each("style", STYLES)
def test_open_cell_shows_captured_values(style):
    trace = capture_style(style)
    selection = select(trace, open="cell")
    cell = draw_whole_model(trace, selection).open["cell"]
    captured = {name: trace[f"blocks.1.attn.{name}"][2, QUERY, KEY] for name in ("scores", "pattern")}
    steps = {step["kind"]: step["value"] for step in cell["steps"]}
    divisor = trace.config.score_divisor or np.sqrt(trace.config.d_head)
    assert np.dot(cell["query"], cell["key"]) / divisor == pytest.approx(captured["scores"], abs=2e-3)
    assert contains_number(steps["score"], captured["scores"])
    assert contains_number(steps["weight"], captured["pattern"])
    hidden = trace.config.window(1) is not None and trace.config.window(1) <= QUERY - KEY
    assert steps["mask"] == ("hidden" if hidden else "visible")
    before = [*["QK-norm"] * trace.config.qk_norm, *["RoPE"] * trace.config.has_rope(1)]  # acts on q and k before q·k
    assert cell["steps"][0]["name"].split(":")[0] == " after ".join(filter(None, ("q·k", " and ".join(before))))


@subtest_each("length", [1, 12, 32])
def test_folded_rows_sum_their_weights(length):
    trace = capture_style("rope", length)
    figure = draw_whole_model(trace, select(trace, open="block", query=length - 1))
    assert len(figure.rows) <= MAX_ROWS and figure.rows[0][0] == 0
    assert [row[0] for row in figure.rows[1:]] == [row[1] + 1 for row in figure.rows[:-1]]
    assert figure.rows[-1][1] == length - 1
    for head, rows in enumerate(figure.open["patterns"]):
        for i, ((first, last, _text), weights) in enumerate(zip(figure.rows, rows, strict=True)):
            if first < last:
                assert weights == []
                continue
            pattern = trace["blocks.1.attn.pattern"][head, first]
            expected = [pattern[start : end + 1].sum() for start, end, _text in figure.rows[: i + 1]]
            np.testing.assert_allclose(weights, expected, atol=1e-6)  # unrounded, so the page rounds only once
            assert sum(weights) == pytest.approx(1, abs=1e-4)


def test_folding_keeps_important_tokens():
    importance = np.zeros(1000)
    importance[[3, 500, 501, 900]] = 1, 4, 2, 3
    rows = fold_tokens(importance, {999, 20}, 18)
    singles = {row[0] for row in rows if len(row) == 1}
    assert len(rows) <= 18 and {3, 20, 500, 501, 900, 999} <= singles
    assert [position for row in rows for position in row] == list(range(1000))


@each_style
def test_sentence_names_head_with_largest_effect(trace):
    selection = select(trace)
    figure, sentence = draw_whole_model(trace, selection), whole_model_sentence(trace, selection)
    layer, head, key_position, _norm, effect, _weight = max(figure.curves, key=lambda curve: curve[4])
    assert len(sentence.split()) <= 25
    key = quote_token(trace.tokens[key_position])
    assert f"look back that adds most: layer {layer} head {head} at {key} (" in sentence
    assert contains_number(sentence, effect)
    story = whole_model_sentence(trace, select(trace, depth="story"))
    token = escape_token(trace.tokens[key_position])
    assert f"look back that adds most to its score is at “{token.removeprefix('·') or token}”." in story  # as a word
    for level in ("block", "head", "cell"):
        assert 5 < len(whole_model_sentence(trace, select(trace, open=level)).split()) <= 25
    check_story_sentences(trace, figure)


@subtest_each("style", STYLES)
def test_story_says_that_open_head_is_changed(style):
    trace = capture_edited_style(style)  # changes head 1
    changed, other = (whole_model_sentence(trace, select(trace, open="head", depth="story", head=h)) for h in (1, 2))
    assert changed.endswith(" The head is off and adds nothing.") and " This look " in other


def check_story_sentences(trace, figure):
    """Compare what the story says of an open block and of its head with the signs of their effects."""
    block, head = (whole_model_sentence(trace, select(trace, open=level, depth="story")) for level in ("block", "head"))
    heads, feed_forward = sum(figure.blocks[1]["heads"]), figure.blocks[1]["feed_forward"]
    verbs = "speak for" if heads > 0 else "speak against"
    assert verbs in block and ("; its feed-forward " in block) == ((heads > 0) != (feed_forward > 0))
    key = trace["blocks.1.attn.pattern"][2, QUERY, : QUERY + 1].argmax()
    effects = attribution_by_source(trace, QUERY, int(next_token_ranking(trace, QUERY)[0])).effects
    heads = np.array([block["heads"] for block in figure.blocks])
    look, whole = (
        0 if abs(value) < 0.04 * np.abs(values).max() else np.sign(value)
        for value, values in ((effects[1, 2, key], effects), (heads[1, 2], heads))
    )
    verb = {0: "says little about", 1: "speaks for", -1: "speaks against"}[look]
    assert f"looks most at {quote_word(trace.tokens[key])} (" in head and f"This look {verb} " in head
    ending = {0: "does little.", 1: "speaks for it.", -1: "speaks against it."}[whole]
    assert head.endswith(f" The head as a whole {ending}") == (look != whole)


@each_style
@subtest_each("key", range(QUERY + 1))
def test_story_ranks_key_of_open_cell(trace, key):
    selection = select(trace, open="cell", depth="story", key=key)
    scores, weights = (trace[f"blocks.1.attn.{name}"][2, QUERY, : QUERY + 1] for name in ("scores", "pattern"))
    visible = [at for at in range(QUERY + 1) if weights[at] > 0 or at == key]  # in a window
    better = int((scores[visible] > scores[key]).sum())
    more = f"{better} of {len(visible)} keys (k) fit its question (q) better."
    best = f"of {len(visible)} keys (k), this one fits its question (q) best."
    share = format_percent(weights[key])
    sentence = whole_model_sentence(trace, selection)
    assert sentence.endswith(f" {share} of its attention: {more if better else best}")
    steps = {step["kind"]: step for step in draw_whole_model(trace, selection).open["cell"]["steps"]}
    assert (steps["rank"]["value"], steps["weight"]["value"]) == (f"{better + 1} of {len(visible)}", share)
    effect = attribution_by_source(trace, QUERY, int(trace["logits"][QUERY].argmax())).effects[1, 2, key]
    name = "for the answer" if effect > 0 else "against the answer"
    assert steps["effect"]["name"] == (name if abs(effect) >= 0.005 else "of little effect on the answer")


def test_first_token_has_no_curves():
    trace = capture(models()["rope"], tokenizer().encode("Once")[:1], tokenizer=tokenizer())
    figure = draw_whole_model(trace, select(trace, query=0))
    assert figure.curves == [] and figure.rest == [0, 0.0]
    assert "no earlier token" in whole_model_sentence(trace, select(trace, query=0))


def test_packed_figure_is_small():
    figure = draw_whole_model(capture_style("rope", 32), select(capture_style("rope", 32), open="cell"))
    packed = WholeModelWidget.pack(figure)
    assert packed["rows"][0][0] == 0 and packed["open"]["level"] == "cell"
    assert len(str(packed)) < 30_000
