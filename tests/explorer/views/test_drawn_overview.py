"""The map of the model as the browser shows it: its colours, the words under the pointer, where a click leads."""

import html
import re

import numpy as np
import pytest

from explorer.views.overview import plan as at
from explorer.views.overview.plan import Plan
from explorer.views.style import ATTENTION, FEED_FORWARD, label
from tests.drawn import Picture, Point, tells
from tests.look import PRE_NORM, Look

pytestmark = pytest.mark.parametrize("style", PRE_NORM)


@pytest.fixture
def seen(look, style) -> Look:
    return look(style)


@pytest.fixture
def picture(seen) -> Picture:
    return seen.picture("overview", "map")


def under(picture: Picture, x: float, y: float) -> Point:
    """What the pointer meets at a place: the last bar that is drawn around it."""
    bars = [(i, part) for i, part in enumerate(picture.parts) if part["type"] == "bar"]
    around = [
        (i, n)
        for i, part in bars
        for n, (middle, width, base, height) in enumerate(
            zip(part["x"], part["width"], part["base"], part["y"], strict=True)
        )
        if abs(x - middle) < width / 2 and 0 < y - base < height
    ]
    part, n = around[-1]
    return [p for p in picture.points() if p.part == part][n]


def test_each_head_has_the_colour_of_what_it_adds_where_its_number_stands(seen, picture):
    plan = Plan(seen.trace.config)
    for layer in (0, 1):
        added, written = seen.added(seen.head_outputs(layer)), np.linalg.norm(seen.head_outputs(layer), axis=-1)
        for head in range(seen.trace.config.num_heads):
            left, right, low, high = plan.head(layer, head)
            p = under(picture, (left + right) / 2, (low + high) / 2)
            assert p.told.startswith(f"layer {layer} head {head}\n")
            assert p.colour == pytest.approx(added[head], rel=1e-3, abs=1e-5)
            assert tells(p.told, written[head]) and tells(p.told, p.colour)
            assert p.change == {"view": "attention", "layer": layer, "head": head, "target": 3}


def test_each_feed_forward_has_the_colour_of_what_it_adds(seen, picture):
    plan = Plan(seen.trace.config)
    for layer in (0, 1):
        out = seen.trace[f"blocks.{layer}.ffn.out"][9].astype(float)
        p = under(picture, np.mean(plan.box(layer)), np.mean(at.FEED_FORWARD))
        assert p.told.startswith(f"layer {layer} feed-forward")
        assert p.colour == pytest.approx(seen.added(out), rel=1e-3, abs=1e-5)
        assert tells(p.told, np.linalg.norm(out)) and tells(p.told, p.colour)
        assert p.change == {"view": "feed_forward", "layer": layer, "head": 2, "target": 3}


def test_colours_have_the_page_s_background_at_0(seen, picture):
    axis = picture.layout["coloraxis"]
    colours = [p.colour for p in picture.points() if isinstance(p.colour, float)]
    assert axis["cmax"] == -axis["cmin"] == max(map(abs, colours))
    assert axis["autocolorscale"] and len(colours) == 2 * (seen.trace.config.num_heads + 1)


def test_next_tokens_have_bars_as_long_as_they_are_probable(seen, picture):
    logits = seen.trace["logits"][9].astype(float)
    chances = np.exp(logits) / np.exp(logits).sum()
    order = np.argsort(-logits, kind="stable")
    (polygons,) = [part for part in picture.parts if part.get("fill") == "toself"]
    corners = [(x, y) for x, y in zip(polygons["x"], polygons["y"], strict=True) if x is not None]
    bars = np.reshape(corners, (-1, 5, 2))
    left, right = at.NEXT_TOKENS
    listed = [p for p in picture.points() if p.change.get("view") == "overview"]
    assert [p.change["target"] for p in listed] == [1, 2, 3, 4, 5, 6]  # the sixth is the chosen rival
    for p, bar in zip(listed, bars, strict=True):
        token_id = order[p.change["target"] - 1]
        assert p.told.startswith(html.unescape(label(seen.trace.vocabulary[token_id])))
        assert f"rank {p.change['target']}," in p.told
        assert tells(p.told, chances[token_id]) and tells(p.told, logits[token_id])
        assert np.ptp(bar[:, 0]) == pytest.approx((right - left) * chances[token_id], rel=1e-4)
        assert under(picture, left + 1, bar[:, 1].mean()) == p


def test_every_disc_says_the_layer_that_its_click_opens(picture):
    told = [p for p in picture.points() if re.match(r"layer \d", p.told)]
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
