"""Numbers of the map: colours, texts and formula."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.direct_logit_attribution import direct_logit_attribution, forward_pass_overview
from explorer.analysis.next_token import next_token_distribution, ranking_without_interventions
from explorer.analysis.residual import sublayer_updates
from explorer.explain.notation import format_number, format_six_digits
from explorer.views.overview import VIEW, draw_logit_waterfall, draw_model_map
from explorer.views.overview.map_layout import (
    LANDSCAPE_ATTENTION_ADDS,
    LANDSCAPE_ATTENTION_WRITES,
    LANDSCAPE_FEED_FORWARD_ADDS,
    LANDSCAPE_FEED_FORWARD_WRITES,
    LANDSCAPE_LEFT,
    LANDSCAPE_STREAM_LENGTHS,
    LANDSCAPE_TITLES,
    PortraitLayout,
)
from tests import layouts
from tests.subtest_loops import each_style

from .map_selection import SELECTION, target_token_id


@each_style
def test_elements_are_coloured_by_their_contribution(trace):
    token_id = target_token_id(trace)
    diagram = draw_model_map(trace, SELECTION)
    parts = diagram.parts
    contributions = direct_logit_attribution(trace, SELECTION.query, token_id)
    values = {kind: [part.value for part in parts if part.kind == kind] for kind in ("head", "feed_forward")}
    assert_allclose(values["head"], contributions.heads.ravel())
    assert_allclose(values["feed_forward"], contributions.feed_forward)
    assert diagram.largest == max(np.abs(contributions.heads).max(), np.abs(contributions.feed_forward).max())
    assert {part.kind for part in parts if part.value is not None} == {"head", "feed_forward", "next_token"}


@each_style
def test_legend_explains_colours_and_discs(trace):
    diagram = draw_model_map(trace, SELECTION)
    least, most = f"−{format_number(diagram.largest)}", f"+{format_number(diagram.largest)}"
    for sheet in diagram.sheets:
        left, _, right, lower = sheet.scale
        ticks = {word.x: word.text for word in sheet.labels if word.y == lower + 8}
        assert ticks == {left: least, (left + right) / 2: "0", right: most}
        beside = [
            [word.text for word in sheet.labels if (word.x, word.y) == (box[2] + 12, box[3] - 7)]
            for _, box in sheet.legend
        ]
        assert beside == [[kind] for kind, _ in sheet.legend]
        assert sum(beside, []) == ["norm", "addition"] + ["rotation"] * (trace.config.position == "rope")


@each_style
def test_map_has_numbers_of_each_sublayer(trace):
    pass_overview = forward_pass_overview(trace, SELECTION.query, target_token_id(trace))
    diagram = draw_model_map(trace, SELECTION)
    rows = {}
    for word in diagram.sheets[0].labels:
        if word.x > LANDSCAPE_LEFT:
            rows.setdefault(word.y, []).append(word.text)
    lengths = sublayer_updates(trace, SELECTION.query).norms.reshape(-1, 2)
    assert rows[LANDSCAPE_TITLES] == [f"layer {layer}" for layer in range(trace.config.num_layers)]
    assert rows[LANDSCAPE_ATTENTION_WRITES] == [format_number(length) for length in lengths[:, 0]]
    assert rows[LANDSCAPE_FEED_FORWARD_WRITES] == [format_number(length) for length in lengths[:, 1]]
    assert [text.lstrip("+") for text in rows[LANDSCAPE_ATTENTION_ADDS]] == [
        format_number(value) for value in pass_overview.logit_effects[:, 0]
    ]
    assert [text.lstrip("+") for text in rows[LANDSCAPE_FEED_FORWARD_ADDS]] == [
        format_number(value) for value in pass_overview.logit_effects[:, 1]
    ]
    per_block = (len(pass_overview.stream) - 1) // trace.config.num_layers
    assert rows[LANDSCAPE_STREAM_LENGTHS] == [format_number(length) for length in pass_overview.stream[::per_block]]


@each_style
def test_portrait_map_has_numbers_of_each_sublayer(trace):
    pass_overview = forward_pass_overview(trace, SELECTION.query, target_token_id(trace))
    diagram = draw_model_map(trace, SELECTION)
    plan, per_block = PortraitLayout(trace.config), (len(pass_overview.stream) - 1) // trace.config.num_layers
    for layer in range(trace.config.num_layers):
        words = [
            word
            for word in diagram.sheets[1].labels
            if plan.layer_offset(layer, 0) < word.y < plan.layer_offset(layer, 1)
        ]
        left, right = ([word.text for word in words if (word.x > plan.stream) is side] for side in (False, True))
        attention, feed_forward = (
            [f"adds {'+' if adds > 0 else ''}{format_number(adds)}", f"length {format_number(writes)}"]
            for adds, writes in zip(pass_overview.logit_effects[layer], pass_overview.write_norms[layer], strict=True)
        )
        assert left == [f"layer {layer}", "attention", *attention]
        assert right == [*feed_forward, f"‖x‖₂ {format_number(pass_overview.stream[layer * per_block])}"]
    last = [word.text for word in diagram.sheets[1].labels if word.text.startswith("‖x‖₂")][-1]
    assert last == f"‖x‖₂ {format_number(pass_overview.stream[-1])}"


@each_style
def test_hover_texts_have_all_digits(trace):
    pass_overview = forward_pass_overview(trace, SELECTION.query, target_token_id(trace))
    parts = draw_model_map(trace, SELECTION).parts
    hover_texts = {
        kind: [part.hover_text for part in parts if part.kind == kind] for kind in ("head", "o_proj", "feed_forward")
    }
    places = list(np.ndindex(pass_overview.attribution.heads.shape))
    for (layer, head), text in zip(places, hover_texts["head"], strict=True):
        length, adds = pass_overview.head_write_norms[layer, head], pass_overview.attribution.heads[layer, head]
        assert text.startswith(
            f"layer {layer} head {head}\nwrites a vector of length {format_six_digits(length)}\n"
            f"adds {format_six_digits(adds)} to"
        )
    for layer, texts in enumerate(zip(hover_texts["o_proj"], hover_texts["feed_forward"], strict=True)):
        for text, name, length, adds in zip(
            texts,
            ("o_proj", "feed-forward"),
            pass_overview.write_norms[layer],
            pass_overview.logit_effects[layer],
            strict=True,
        ):
            assert text.startswith(f"layer {layer} {name}")
            normed = " after its norm" * (name == "o_proj" and layouts.output_norm(trace.config, "attn") is not None)
            assert (
                f"of length {format_six_digits(length)}{normed}\nadds {format_six_digits(adds)} to the logit of "
                in text
            )
        bias = f"(of this its bias {format_six_digits(pass_overview.attribution.biases[layer])})"
        assert (bias in texts[0]) is trace.config.bias
    divisors = [part.hover_text.partition("divides by ")[2].partition("\n")[0] for part in parts if part.kind == "norm"]
    assert divisors == list(map(format_six_digits, pass_overview.divisors.values()))
    lengths = [part.hover_text.rpartition("length ")[2] for part in parts if part.kind == "addition"]
    added = trace.config.position in ("sinusoidal", "learned")
    is_post_norm = trace.config.norm_placement == "post"
    ends = [pair for i, pair in enumerate(pairwise(pass_overview.stream)) if not is_post_norm or i % 2 == 0]
    assert lengths == [format_six_digits(pass_overview.stream[0])] * added + [
        f"{format_six_digits(a)} → {format_six_digits(b)}" for a, b in ends
    ]


def test_contrast_token_gives_logit_difference(rope_trace):
    selection = replace(SELECTION, rival=5)
    for sheet, count in zip(draw_model_map(rope_trace, selection).sheets, (3, 1), strict=True):
        texts = [word.text for word in sheet.labels]
        assert texts.count("adds to the lead") == count and "adds to the logit" not in texts
    order, logits = ranking_without_interventions(rope_trace, 9), rope_trace["logits"][9]
    lead = logits[order[1]] - logits[order[4]]
    assert draw_logit_waterfall(rope_trace, selection).data[0].y[-1] == pytest.approx(lead, abs=1e-4)
    assert f"captured {format_six_digits(lead)}, " in VIEW.formula(rope_trace, selection)


@each_style
def test_formula_adds_up(trace):
    is_post_norm = trace.config.norm_placement == "post"
    token_id = target_token_id(trace)
    pass_overview = forward_pass_overview(trace, SELECTION.query, token_id)
    formula = VIEW.formula(trace, SELECTION)
    attention, feed_forward = pass_overview.logit_effects.sum(0)
    assert f"attention {format_six_digits(attention)} + feed-forward {format_six_digits(feed_forward)}" in formula
    total, logit = map(format_six_digits, (pass_overview.attribution.total, pass_overview.attribution.logit))
    assert f"= {total}   captured {logit}, off by " in formula
    assert f"‖x‖₂ = {format_number(pass_overview.stream[0])} → {format_number(pass_overview.stream[-1])}" in formula
    assert f"= {format_number(next_token_distribution(trace, SELECTION.query).plain[token_id])}, rank 2" in formula
    assert ("through a norm" in formula) is is_post_norm
