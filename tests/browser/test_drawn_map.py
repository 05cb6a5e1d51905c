"""The map of the model as it is painted: fills, thicknesses, words and frames, held against the run's arrays."""

import io
import re
from itertools import product

import numpy as np
import pytest
from PIL import Image

from explorer.analysis.next_token import next_token
from explorer.views.overview.tall import Tall
from explorer.views.overview.wide import NEXT_TOKENS, Wide
from tests.drawn import tells
from tests.exhaustive import in_turn

from .conftest import DESK
from .drawn_map import (
    CHOSEN,
    FOUND,
    FRAMED,
    LINES,
    TALL,
    TELEPHONE,
    WORDS,
    contrast,
    in_sight,
    numbers_on,
    opened,
    parts_of,
)
from .painted import in_both_themes, on_scale, run_on_show, settled


@pytest.mark.parametrize(
    ("checkpoint", "kind"),
    [
        *in_turn(["gpt-twin", "tiny"], [Wide, Tall]),
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive)
            for case in product(["no-positions", "one-head"], [Wide, Tall])
        ),
    ],
)
def test_every_part_has_its_colour_and_its_words_where_it_stands(visitor, checkpoint, kind):
    # As high as the map of a telephone is, so that nothing of it is out of sight.
    person, picture = opened(visitor, checkpoint, viewport=DESK if kind is Wide else TALL, **CHOSEN)
    trace, found, _ = numbers_on(person)
    expected = list(parts_of(trace, found, 9, kind(trace.config, 6)))
    largest = max(np.abs(found.parts.heads).max(), np.abs(found.parts.feed_forward).max())
    person.evaluate("choosing.pick({ layer: 0 })")  # and with it the address
    person.at_rest()
    for theme in in_both_themes(person, picture):
        painted = settled(in_sight(picture)).evaluate(FOUND, [[float(x), float(y)] for (x, y), *_ in expected])
        assert len({part["item"] for part in painted}) == len(expected) == picture.locator(".part").count() - 6
        for part, (_, says, numbers, adds) in zip(painted, expected, strict=True):
            assert part["label"].startswith(says), (part, says)
            assert all(tells(part["label"], float(f"{number:.6g}")) for number in numbers), (part, numbers)
            if adds is not None:
                assert np.abs(on_scale(theme.diverging, (adds / largest + 1) / 2) - part["fill"]).max() <= 2, part
                assert contrast(part["fill"], part["ink"]) >= 4.5
            if (head := re.match(r"layer \d+ head (\d+)", says)) and part["text"]:
                assert part["text"] == head[1]


@pytest.mark.exhaustive
def test_the_bar_of_colours_is_that_of_the_parts(visitor):
    """The least at its left and the most at its right, as its numbers say."""
    person, picture = opened(visitor, **CHOSEN)
    _, found, _ = numbers_on(person)
    largest = max(np.abs(found.parts.heads).max(), np.abs(found.parts.feed_forward).max())
    person.evaluate("choosing.pick({ layer: 0 })")  # and with it the address
    person.at_rest()
    for theme in in_both_themes(person, picture):
        bar = in_sight(picture).locator(".scale").bounding_box()
        image = Image.open(io.BytesIO(person.page.screenshot(clip=bar))).convert("RGB")
        row = np.asarray(image, float)[image.height // 2]
        shares = (np.arange(len(row)) + 0.5) / len(row)
        assert np.abs(on_scale(theme.diverging, shares) - row)[2:-2].max() <= 6
    words = picture.evaluate(WORDS)["free"]
    ticks = sorted((word for word in words if word[2] > bar["y"]), key=lambda word: word[1])[-3:]
    assert [tick[0][:1] for tick in ticks] == ["−", "0", "+"]
    assert tells(ticks[0][0], -largest) and tells(ticks[2][0], largest)
    assert abs(ticks[0][1] - bar["x"]) < 2 and abs(ticks[2][3] - bar["x"] - bar["width"]) < 2


def test_lines_are_as_thick_as_vectors_are_long(visitor):
    person, picture = opened(visitor, query=9)
    trace, found, _ = numbers_on(person)
    plan = Wide(trace.config)
    longest = max(found.stream.max(), found.writes.max(), found.token, found.positions)
    lines = [line for line in settled(picture).evaluate(LINES) if not line["arrow"]]
    for layer in range(3):
        for i, (kind, place) in enumerate((("attention", "add_attn"), ("feed_forward", "add_ffn"))):
            (width,) = {
                line["width"]
                for line in lines
                if line["kind"] == kind and line["corners"][2] == pytest.approx(plan.place(layer, place), abs=0.01)
            }
            assert width == pytest.approx(max(1, plan.thickest * found.writes[layer, i] / longest), abs=0.01)
    stream = sorted((line for line in lines if line["kind"] == "residual"), key=lambda line: line["corners"][0])
    assert [line["width"] for line in stream] == pytest.approx(
        np.maximum(1, plan.thickest * found.stream / longest), abs=0.01
    )
    assert {line["kind"]: line["stroke"] for line in lines} == {
        "attention": "rgb(0, 114, 178)",
        "feed_forward": "rgb(230, 159, 0)",
        "residual": "rgb(136, 136, 136)",
        "embedding": "rgb(0, 158, 115)",
    }


def test_next_tokens_have_bars_as_long_as_they_are_probable(visitor):
    person, picture = opened(visitor, **CHOSEN)
    trace, _, order = numbers_on(person)
    chances = next_token(trace, 9).plain
    left, right = NEXT_TOKENS
    rows = picture.locator(".part.next_token")
    assert rows.count() == 6  # the five likeliest, and the chosen rival
    for i, rank in enumerate((1, 2, 3, 4, 5, 7)):
        chance, row = chances[order[rank - 1]], rows.nth(i)
        bar = row.locator(".detail").get_attribute("d")
        assert re.match(r"M794,[\d.]+h([\d.e-]+)v3H794Z", bar)
        assert float(re.search(r"h([\d.e-]+)", bar)[1]) == pytest.approx((right - left) * chance, rel=1e-4)
        assert f"rank {rank}, " in row.get_attribute("aria-label")
        assert tells(row.get_attribute("aria-label"), chance)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", [Wide, Tall])
def test_frames_are_around_what_is_chosen_at_once(visitor, kind):
    """Without waiting for Python."""
    person, picture = opened(visitor, viewport=DESK if kind is Wide else TELEPHONE, **CHOSEN)
    config = run_on_show(person).config

    def expect_framed(choice: dict | None, layer: int, head: int, *, listed: int, **rows: int):
        plan = kind(config, listed)
        boxes = {"head": plan.head(layer, head)} | {name: plan.next_token(i) for name, i in rows.items()}
        around = {name: [a, b, c - a, d - b] for name, (a, b, c, d) in boxes.items()}
        framed, marked = person.evaluate(FRAMED, choice)
        assert framed.keys() == around.keys()
        for name, edges in around.items():
            assert framed[name] == pytest.approx(edges, abs=0.011), name
        assert marked[0].startswith(f"layer {layer} head {head}, ")
        assert len(marked) == 1 + len(rows)

    expect_framed(None, 2, 1, listed=6, target=1, rival=5)
    expect_framed({"layer": 0, "head": 3, "target": 1}, 0, 3, listed=6, target=0, rival=5)
    person.at_rest()
    with person.redrawn(picture):
        expect_framed({"layer": 1, "head": 0, "rival": 0}, 1, 0, listed=6, target=0)
    expect_framed(None, 1, 0, listed=5, target=0)
