from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.attribution import attribution
from explorer.analysis.next_token import next_token, ranking
from explorer.analysis.overview import overview
from explorer.analysis.residual import updates
from explorer.explain.notation import number
from explorer.state.selection import Selection
from explorer.views.overview import VIEW, map_of, sum_of
from explorer.views.overview import plan as at
from explorer.views.overview.flow import flows
from explorer.views.overview.parts import Parts, full
from explorer.views.overview.plan import Plan
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL

SELECTION = Selection(layer=1, head=2, query=9, target=2)


@pytest.fixture
def token_id(trace) -> int:
    return int(ranking(trace, SELECTION.query)[SELECTION.target - 1])


@pytest.fixture
def found(trace, token_id):
    return overview(trace, SELECTION.query, token_id)


@pytest.fixture
def parts(trace, found) -> list:
    return list(Parts(trace, SELECTION, found, "the logit"))


@pytest.fixture
def plan(trace) -> Plan:
    return Plan(trace.config)


@pytest.fixture
def post(trace) -> bool:
    return trace.config.norm_placement == "post"


def drawn(fig) -> dict[str, dict]:
    """Text under the pointer -> what a click there selects, of all points that have one."""
    points = {}
    for part in fig.data:
        told = part.hovertext if part.type == "bar" and part.hovertext is not None else part.text
        if part.customdata is not None:
            points |= dict(zip(told, map(tuple, part.customdata), strict=True))
    return points


def test_every_part_of_every_block_is_drawn_and_clickable(trace, parts):
    config = trace.config
    layers, added = config.num_layers, config.position in ("sinusoidal", "learned")
    assert Counter(part.kind for part in parts) == Counter(
        token=1,
        position=added,
        addition=2 * layers + added,
        norm=2 * layers + (config.norm_placement == "pre"),
        rotation=layers * (config.position == "rope"),
        head=layers * config.num_heads,
        o_proj=layers,
        feed_forward=layers,
        lm_head=1,
        next_token=5,
    )
    points = [
        (round(float(x), 6), tuple(row))
        for data in map_of(trace, SELECTION).data
        if data.customdata is not None
        for x, row in zip(data.x, data.customdata, strict=True)
    ]
    assert sorted(points) == sorted((round(float(np.mean(part.x)), 6), part.click) for part in parts)


def test_a_click_leads_to_the_parts_own_tab(trace, parts):
    tabs = {
        "token": "tokens",
        "position": "positions",
        "norm": "residual",
        "addition": "residual",
        "rotation": "positions",
        "head": "attention",
        "o_proj": "attention",
        "feed_forward": "feed_forward",
        "lm_head": "prediction",
        "next_token": "overview",
    }
    assert all(part.click[0] == tabs[part.kind] for part in parts)
    chosen = SELECTION.layer, SELECTION.head, SELECTION.target
    heads = [part.click[1:] for part in parts if part.kind == "head"]
    layers, per_layer = trace.config.num_layers, trace.config.num_heads
    assert heads == [(layer, head, chosen[2]) for layer in range(layers) for head in range(per_layer)]
    for kind in ("o_proj", "feed_forward", "rotation"):
        clicks = [part.click[1:] for part in parts if part.kind == kind]
        assert clicks in ([], [(layer, *chosen[1:]) for layer in range(layers)])
    assert [part.click[1:] for part in parts if part.kind in ("token", "lm_head")] == [chosen] * 2
    assert [part.click[1:] for part in parts if part.kind == "next_token"] == [(*chosen[:2], i) for i in range(1, 6)]


def test_the_norm_sits_where_it_sits(plan, parts, post):
    """Between an addition and the next block's read if post-norm, else on the way into its sublayer."""
    norms = [part for part in parts if part.kind == "norm"]
    ends = [part for part in norms if part.y == at.STREAM]
    assert len(ends) == (len(norms) if post else 1)
    order = [part.kind for part in parts if part.kind not in ("head", "rotation", "next_token")]
    block = ["o_proj", "addition", "norm", "feed_forward", "addition", "norm"]
    if not post:
        block = ["norm", "o_proj", "addition", "norm", "feed_forward", "addition"]
    first = order.index(block[0])
    assert order[first : first + 12] == block * 2
    assert order[first + 12 :] == ([] if post else ["norm"]) + ["lm_head"]
    for layer in range(plan.config.num_layers):
        for sublayer in ("attn", "ffn"):
            x, y = plan.norm(layer, sublayer)
            read, added = (plan.place(layer, f"{what} {sublayer}") for what in ("read", "add"))
            assert read < added
            assert (added < x and y == at.STREAM) if post else (x == read and y != at.STREAM)
    assert plan.changes() == sorted(plan.changes())


def test_heads_and_feed_forwards_are_coloured_by_what_they_add(trace, token_id):
    fig, taken = map_of(trace, SELECTION), attribution(trace, SELECTION.query, token_id)
    heads, feed_forward = (data for data in fig.data if data.type == "bar" and data.marker.coloraxis)
    assert_allclose(heads.marker.color, taken.heads.ravel())
    assert_allclose(feed_forward.marker.color, taken.feed_forward)
    largest = max(np.abs(taken.heads).max(), np.abs(taken.feed_forward).max())
    assert (fig.layout.coloraxis.cmin, fig.layout.coloraxis.cmax) == (-largest, largest)


def test_the_map_has_the_numbers_of_each_sublayer(trace, found):
    (words,) = (data for data in map_of(trace, SELECTION).data if data.type == "scatter" and data.mode == "text")
    rows = {}
    for x, y, text in zip(words.x, words.y, words.text, strict=True):
        if x > at.LEFT:
            rows.setdefault(y, []).append(text)
    lengths = updates(trace, SELECTION.query).lengths.reshape(-1, 2)
    assert rows[at.ATTENTION_WRITES] == [number(length) for length in lengths[:, 0]]
    assert rows[at.FEED_FORWARD_WRITES] == [number(length) for length in lengths[:, 1]]
    assert [text.lstrip("+") for text in rows[at.ATTENTION_ADDS]] == [number(value) for value in found.adds[:, 0]]
    assert [text.lstrip("+") for text in rows[at.FEED_FORWARD_ADDS]] == [number(value) for value in found.adds[:, 1]]
    per_block = (len(found.stream) - 1) // trace.config.num_layers
    assert rows[at.STREAM_LENGTHS] == [number(length) for length in found.stream[::per_block]]


def test_all_of_a_number_is_told_under_the_pointer(trace, found):
    told = drawn(map_of(trace, SELECTION))
    head = next(text for text in told if text.startswith("layer 1 head 2<br>"))
    assert f"length {full(found.head_writes[1, 2])}<br>adds {full(found.parts.heads[1, 2])} to the logit of " in head
    sublayer = next(text for text in told if text.startswith("layer 0 feed-forward, "))
    assert f"length {full(found.writes[0, 1])}<br>adds {full(found.adds[0, 1])} to " in sublayer
    bias = next(text for text in told if text.startswith("layer 1 o_proj"))
    assert (f"(of this its bias {full(found.parts.biases[1])})" in bias) is trace.config.bias


def test_lines_are_as_thick_as_vectors_are_long(found, plan):
    drawn_flows = flows(plan, found)
    widths = {
        color: np.array([flow["line"]["width"] for flow in drawn_flows if flow["line"]["color"] == color])
        for color in (ATTENTION, FEED_FORWARD, RESIDUAL, EMBEDDING)
    }
    longest = max(found.stream.max(), found.writes.max(), found.token, found.positions)
    for color, lengths in (
        (ATTENTION, found.writes[:, 0]),
        (FEED_FORWARD, found.writes[:, 1]),
        (RESIDUAL, found.stream),
        (EMBEDDING, np.array([found.positions, found.token] if found.positions else [])),
    ):
        assert_allclose(widths[color], np.maximum(1, plan.thickest * lengths / longest), atol=0.006)


def test_probabilities_of_next_tokens_and_of_those_chosen(trace):
    selection = replace(SELECTION, target=8, rival=20)
    listed = [part for part in Parts(trace, selection, overview(trace, 9, 1, 2), "") if part.kind == "next_token"]
    assert [part.click[-1] for part in listed] == [1, 2, 3, 4, 5, 8, 20]
    order, plain = ranking(trace, 9), next_token(trace, 9).plain
    assert_allclose([part.value for part in listed], [plain[order[part.click[-1] - 1]] for part in listed])


def test_the_running_sum_goes_from_nothing_to_the_logit(trace, found, token_id):
    bars = sum_of(trace, SELECTION).data[0]
    starts, values = np.array(bars.base), np.array(bars.y)
    assert starts[0] == 0
    assert_allclose(starts[1:-1], (starts + values)[:-2], atol=1e-9)
    assert starts[-1] == 0
    assert values[-1] == pytest.approx(trace["logits"][SELECTION.query, token_id], abs=1e-4)
    assert values[:-1].sum() == pytest.approx(values[-1])
    added, shifted = trace.config.position in ("sinusoidal", "learned"), trace.config.norm == "layernorm"
    sublayers = [ATTENTION, FEED_FORWARD] * trace.config.num_layers
    assert list(bars.marker.color) == [EMBEDDING] * (1 + added) + sublayers + [NORM] * shifted + [RESIDUAL]
    assert_allclose(values[1 + added : 1 + added + len(sublayers)], found.adds.ravel())
    assert list(bars.x) == sorted(bars.x)


def test_of_a_rival_the_lead_is_explained(rope_trace):
    selection = replace(SELECTION, rival=5)
    fig = map_of(rope_trace, selection)
    assert fig.layout.coloraxis.colorbar.title.text == "adds to the lead"
    (words,) = (data for data in fig.data if data.type == "scatter" and data.mode == "text")
    assert "adds to the lead" in words.text and "adds to the logit" not in words.text
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


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 4), (6, 6), (12, 12), (24, 14), (48, 25)])
def test_no_part_lies_on_another(tiny_config, placement, layers, heads):
    plan = Plan(replace(tiny_config, num_layers=layers, num_heads=heads, d_model=heads * 8, norm_placement=placement))
    cells = [plan.head(layer, head) for layer in range(layers) for head in range(heads)]
    middles = {(round((a + b) / 2, 6), round((c + d) / 2, 6)) for a, b, c, d in cells}
    assert len(middles) == layers * heads
    assert sum((b - a) * (d - c) for a, b, c, d in cells) == pytest.approx(
        sum(right - left for left, right in map(plan.box, range(layers))) * (at.HEADS[1] - at.HEADS[0])
    )
    assert all(left >= at.LEFT and right <= at.RIGHT for left, right in map(plan.box, range(layers)))
    assert plan.changes() == sorted(set(plan.changes()))
    gaps = np.diff([*plan.changes(), at.LM_HEAD[0] if plan.post else at.FINAL_NORM])
    assert gaps.min() >= 0.95 * plan.disc  # discs on the stream


def test_numbers_are_left_out_where_there_is_no_room(tiny_config):
    assert Plan(replace(tiny_config, num_layers=12)).numbered
    assert not Plan(replace(tiny_config, num_layers=24)).numbered
