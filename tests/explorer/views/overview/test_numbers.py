"""The numbers of the map: what its colours, its words and its formula say."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.attribution import attribution
from explorer.analysis.next_token import next_token, ranking
from explorer.analysis.residual import updates
from explorer.explain.notation import full, number
from explorer.views.overview import VIEW, map_of, sum_of
from explorer.views.overview import wide as at
from explorer.views.overview.tall import Tall
from tests import layouts

from .shown import SELECTION


def test_heads_and_feed_forwards_are_coloured_by_what_they_add(trace, diagram, parts, token_id):
    taken = attribution(trace, SELECTION.query, token_id)
    values = {kind: [part.value for part in parts if part.kind == kind] for kind in ("head", "feed_forward")}
    assert_allclose(values["head"], taken.heads.ravel())
    assert_allclose(values["feed_forward"], taken.feed_forward)
    assert diagram.largest == max(np.abs(taken.heads).max(), np.abs(taken.feed_forward).max())
    assert {part.kind for part in parts if part.value is not None} == {"head", "feed_forward", "next_token"}


def test_the_colours_and_the_discs_are_explained(trace, diagram):
    least, most = f"−{number(diagram.largest)}", f"+{number(diagram.largest)}"
    for sheet in diagram.sheets:
        left, _, right, lower = sheet.scale
        ticks = {word.x: word.text for word in sheet.words if word.y == lower + 8}
        assert ticks == {left: least, (left + right) / 2: "0", right: most}
        beside = [
            [word.text for word in sheet.words if (word.x, word.y) == (box[2] + 12, box[3] - 7)]
            for _, box in sheet.legend
        ]
        assert beside == [[kind] for kind, _ in sheet.legend]
        assert sum(beside, []) == ["norm", "addition"] + ["rotation"] * (trace.config.position == "rope")


def test_the_map_has_the_numbers_of_each_sublayer(trace, found, diagram):
    rows = {}
    for word in diagram.sheets[0].words:
        if word.x > at.LEFT:
            rows.setdefault(word.y, []).append(word.text)
    lengths = updates(trace, SELECTION.query).lengths.reshape(-1, 2)
    assert rows[at.TITLES] == [f"layer {layer}" for layer in range(trace.config.num_layers)]
    assert rows[at.ATTENTION_WRITES] == [number(length) for length in lengths[:, 0]]
    assert rows[at.FEED_FORWARD_WRITES] == [number(length) for length in lengths[:, 1]]
    assert [text.lstrip("+") for text in rows[at.ATTENTION_ADDS]] == [number(value) for value in found.adds[:, 0]]
    assert [text.lstrip("+") for text in rows[at.FEED_FORWARD_ADDS]] == [number(value) for value in found.adds[:, 1]]
    per_block = (len(found.stream) - 1) // trace.config.num_layers
    assert rows[at.STREAM_LENGTHS] == [number(length) for length in found.stream[::per_block]]


def test_the_map_of_a_narrow_page_has_the_same_numbers_in_each_block(trace, found, diagram):
    plan, per_block = Tall(trace.config), (len(found.stream) - 1) // trace.config.num_layers
    for layer in range(trace.config.num_layers):
        words = [word for word in diagram.sheets[1].words if plan.at(layer, 0) < word.y < plan.at(layer, 1)]
        left, right = ([word.text for word in words if (word.x > plan.stream) is side] for side in (False, True))
        attention, feed_forward = (
            [f"adds {'+' if adds > 0 else ''}{number(adds)}", f"length {number(writes)}"]
            for adds, writes in zip(found.adds[layer], found.writes[layer], strict=True)
        )
        assert left == [f"layer {layer}", "attention", *attention]
        assert right == [*feed_forward, f"‖x‖₂ {number(found.stream[layer * per_block])}"]
    last = [word.text for word in diagram.sheets[1].words if word.text.startswith("‖x‖₂")][-1]
    assert last == f"‖x‖₂ {number(found.stream[-1])}"


def test_all_of_a_number_is_told_of_every_part(trace, found, parts):
    told = {kind: [part.told for part in parts if part.kind == kind] for kind in ("head", "o_proj", "feed_forward")}
    places = list(np.ndindex(found.parts.heads.shape))
    for (layer, head), text in zip(places, told["head"], strict=True):
        length, adds = found.head_writes[layer, head], found.parts.heads[layer, head]
        assert text.startswith(
            f"layer {layer} head {head}\nwrites a vector of length {full(length)}\nadds {full(adds)} to"
        )
    for layer, texts in enumerate(zip(told["o_proj"], told["feed_forward"], strict=True)):
        for text, name, length, adds in zip(
            texts, ("o_proj", "feed-forward"), found.writes[layer], found.adds[layer], strict=True
        ):
            assert text.startswith(f"layer {layer} {name}")
            normed = " after its norm" * (name == "o_proj" and layouts.output_norm(trace.config, "attn") is not None)
            assert f"of length {full(length)}{normed}\nadds {full(adds)} to the logit of " in text
        bias = f"(of this its bias {full(found.parts.biases[layer])})"
        assert (bias in texts[0]) is trace.config.bias
    divisors = [part.told.partition("divides by ")[2].partition("\n")[0] for part in parts if part.kind == "norm"]
    assert divisors == list(map(full, found.divisors.values()))
    lengths = [part.told.rpartition("length ")[2] for part in parts if part.kind == "addition"]
    added = trace.config.position in ("sinusoidal", "learned")
    post = trace.config.norm_placement == "post"
    ends = [pair for i, pair in enumerate(pairwise(found.stream)) if not post or i % 2 == 0]
    assert lengths == [full(found.stream[0])] * added + [f"{full(a)} → {full(b)}" for a, b in ends]


def test_of_a_rival_the_lead_is_explained(rope_trace):
    selection = replace(SELECTION, rival=5)
    for sheet, times in zip(map_of(rope_trace, selection).sheets, (3, 1), strict=True):
        words = [word.text for word in sheet.words]
        assert words.count("adds to the lead") == times and "adds to the logit" not in words
    order, logits = ranking(rope_trace, 9), rope_trace["logits"][9]
    lead = logits[order[1]] - logits[order[4]]
    assert sum_of(rope_trace, selection).data[0].y[-1] == pytest.approx(lead, abs=1e-4)
    assert f"captured {number(lead)}, " in VIEW.formula(rope_trace, selection)


def test_the_formula_adds_up(trace, found, token_id, post):
    formula = VIEW.formula(trace, SELECTION)
    attention, feed_forward = found.adds.sum(0)
    assert f"attention {number(attention)} + feed-forward {number(feed_forward)}" in formula
    assert f"= {number(found.parts.total)}   captured {number(found.parts.logit)}, off by " in formula
    assert f"‖x‖₂ = {number(found.stream[0])} → {number(found.stream[-1])}" in formula
    assert f"= {number(next_token(trace, SELECTION.query).plain[token_id])}, rank 2" in formula
    assert ("through a norm" in formula) is post
