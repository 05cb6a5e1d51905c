"""The map of the model as the browser has it: its colours, what is told of each part, where a click leads."""

import re

import numpy as np
import pytest

from explorer.views.overview.wide import NEXT_TOKENS, Wide
from explorer.views.style import ATTENTION, FEED_FORWARD, shortened
from tests.drawn import Map, Point, tells
from tests.look import PRE_NORM, Look

pytestmark = pytest.mark.parametrize("style", PRE_NORM)


@pytest.fixture
def seen(look, style) -> Look:
    return look(style)


@pytest.fixture
def drawn(seen) -> Map:
    return seen.picture("overview", "map")


def under(drawn: Map, x: float, y: float) -> Point:
    """What the pointer meets at a place: the last part that is drawn around it."""
    boxes = [part["box"] for part in drawn.parts]
    around = [i for i, (left, upper, right, lower) in enumerate(boxes) if left < x < right and upper < y < lower]
    return drawn.points()[around[-1]]


def test_each_head_has_the_colour_of_what_it_adds_where_its_number_stands(seen, drawn):
    plan = Wide(seen.trace.config)
    for layer in (0, 1):
        added, written = seen.added(seen.head_outputs(layer)), np.linalg.norm(seen.head_outputs(layer), axis=-1)
        for head in range(seen.trace.config.num_heads):
            left, upper, right, lower = plan.head(layer, head)
            p = under(drawn, (left + right) / 2, (upper + lower) / 2)
            assert p.told.startswith(f"layer {layer} head {head}\n")
            assert drawn.parts[p.item]["written"] == str(head)
            assert p.value == pytest.approx(added[head], rel=1e-3, abs=1e-5)
            assert tells(p.told, written[head]) and tells(p.told, p.value)
            assert p.change == {"view": "attention", "layer": layer, "head": head}


def test_each_feed_forward_has_the_colour_of_what_it_adds(seen, drawn):
    plan = Wide(seen.trace.config)
    for layer in (0, 1):
        out = seen.trace[f"blocks.{layer}.ffn.out"][9].astype(float)
        p = under(drawn, np.mean(plan.span(layer, "feed_forward")), np.mean(plan.feed_forward))
        assert p.told.startswith(f"layer {layer} feed-forward")
        assert p.value == pytest.approx(seen.added(out), rel=1e-3, abs=1e-5)
        assert tells(p.told, np.linalg.norm(out)) and tells(p.told, p.value)
        assert p.change == {"view": "feed_forward", "layer": layer}


def test_the_scale_ends_at_the_furthest_that_a_part_adds(drawn):
    coloured = [part["value"] for part in drawn.parts if part["kind"] in ("head", "feed_forward")]
    assert drawn.content["largest"] == max(map(abs, coloured))


def test_lines_are_as_thick_as_the_streams_own_vectors_are_long(seen, drawn):
    lengths = np.linalg.norm(seen.stream[:, 9], axis=-1)
    widths = [width for kind, _, width, arrow in drawn.content["lines"] if kind == "residual" and not arrow]
    shown = lengths / lengths.max() * max(widths)
    np.testing.assert_allclose(widths, np.maximum(1, shown), atol=0.011)
    for kind, sublayer in (("attention", "attn"), ("feed_forward", "ffn")):
        written = [np.linalg.norm(seen.trace[f"blocks.{layer}.{sublayer}.out"][9]) for layer in (0, 1)]
        thick = [width for name, _, width, _ in drawn.content["lines"] if name == kind]
        np.testing.assert_allclose(thick, np.maximum(1, np.array(written) / lengths.max() * max(widths)), atol=0.02)


def test_next_tokens_are_listed_by_their_probability(seen, drawn):
    logits = seen.trace["logits"][9].astype(float)
    chances = np.exp(logits) / np.exp(logits).sum()
    order = np.argsort(-logits, kind="stable")
    listed = [p for p in drawn.points() if "target" in p.change]
    assert [p.change for p in listed] == [{"target": rank} for rank in range(1, 7)]  # the sixth is the chosen rival
    words = [word[:3] for word in drawn.content["words"]]
    for p in listed:
        token_id = order[p.change["target"] - 1]
        token = seen.trace.vocabulary[token_id]
        assert p.told.startswith(f"{shortened(token)}: rank {p.change['target']}, ")
        assert p.value == pytest.approx(chances[token_id], rel=1e-4)
        assert tells(p.told, chances[token_id]) and tells(p.told, logits[token_id])
        _, upper, _, lower = drawn.parts[p.item]["box"]
        name, number = (text for x, y, text in words if upper < y < lower and x > NEXT_TOKENS[0])
        assert name == shortened(token, 7) and tells(number, chances[token_id])


def test_every_disc_says_the_layer_that_its_click_opens(drawn):
    told = [p for p in drawn.points() if re.match(r"layer \d", p.told)]
    assert len(told) >= 2 * 5
    for p in told:
        assert p.change["layer"] == int(re.match(r"layer (\d+)", p.told)[1])


def test_the_running_sum_is_of_the_parts_in_their_order(seen):
    picture = seen.picture("overview", "sum")
    bars = picture.parts[0]
    ends = np.add(bars["base"], bars["y"])
    attention = [seen.added(seen.trace[f"blocks.{i}.attn.out"][9].astype(float)) for i in (0, 1)]
    feed_forward = [seen.added(seen.trace[f"blocks.{i}.ffn.out"][9].astype(float)) for i in (0, 1)]
    points = [p for p in picture.points() if p.part == 0]
    for colour, values in ((ATTENTION, attention), (FEED_FORWARD, feed_forward)):
        some = [p for p in points if p.colour == colour]
        assert [p.value for p in some] == pytest.approx(values, rel=1e-3, abs=1e-4)
        assert [p.change["layer"] for p in some] == [0, 1]
        assert all(f"of layer {i} " in p.told and tells(p.told, p.value) for i, p in enumerate(some))
    token, rival = seen.explained
    lead = seen.trace["logits"][9, token] - seen.trace["logits"][9, rival]
    assert ends[-1] == pytest.approx(lead, abs=1e-4) and tells(points[-1].told, lead)
