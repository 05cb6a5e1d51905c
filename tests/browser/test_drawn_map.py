"""The map of the model as it is painted: fills, thicknesses, words and frames, held against the run's arrays."""

import io
import re
from itertools import product

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

from explorer.analysis.next_token import next_token
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from explorer.views.overview import map_of
from explorer.views.overview.tall import Tall
from explorer.views.overview.wide import NEXT_TOKENS, Wide
from explorer.web.answers.view_contents import packed
from model.config import ModelConfig
from model.transformer_lm import TransformerLM
from tests.drawn import tells
from tests.exhaustive import first_of, in_turn
from tests.specimens import STYLES, trace_of

from .conftest import DESK
from .drawn_map import (
    CHOSEN,
    FOUND,
    FRAMED,
    LINES,
    MOVING,
    TALL,
    TELEPHONE,
    WORDS,
    in_sight,
    numbers_on,
    opened,
    parts_of,
)
from .painted import in_both_themes, on_scale, run_on_show, settled
from .person import Person


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
def test_every_part_has_its_colour_and_its_words_where_it_stands(newcomer, checkpoint, kind):
    # As high as the map of a telephone is, so that nothing of it is out of sight.
    person, picture = opened(newcomer, checkpoint, viewport=DESK if kind is Wide else TALL, **CHOSEN)
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


def contrast(*colours: list[float]) -> float:
    def luminance(rgb) -> float:
        share = np.asarray(rgb) / 255
        return float(
            np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)
        )

    dark, light = sorted(map(luminance, colours))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.exhaustive
def test_the_bar_of_colours_is_that_of_the_parts(newcomer):
    """The least at its left and the most at its right, as its numbers say."""
    person, picture = opened(newcomer, **CHOSEN)
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


def test_lines_are_as_thick_as_vectors_are_long(newcomer):
    person, picture = opened(newcomer, query=9)
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


def test_next_tokens_have_bars_as_long_as_they_are_probable(newcomer):
    person, picture = opened(newcomer, **CHOSEN)
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
def test_frames_are_around_what_is_chosen_at_once(newcomer, kind):
    """Without waiting for Python."""
    person, picture = opened(newcomer, viewport=DESK if kind is Wide else TELEPHONE, **CHOSEN)
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


def show(person: Person, picture: Locator, trace: Trace, selection: Selection):
    """Have the page draw the map of any run."""
    drawn = packed(map_of(trace, selection))

    def swap(route):
        answer = route.fetch()
        body = answer.json()
        if "overview-map" in body.get("contents", {}):
            body["contents"]["overview-map"] = drawn
        route.fulfill(response=answer, json=body)

    person.page.route("**/component_server/**", swap)
    with person.redrawn(picture):
        person.evaluate("choosing.pick({ query: (page.state.query + 1) % 10 })")
    person.at_rest()
    person.page.unroute("**/component_server/**")


def deep(layers: int, heads: int) -> tuple[TransformerLM, Trace]:
    sizes = {"vocab_size": 50, "context_length": 8, "d_model": 2 * heads, "d_ff": 4}
    lm = TransformerLM(ModelConfig.llama_style(**sizes, num_layers=layers, num_heads=heads)).eval()
    return lm, capture(lm, [1, 2, 3])


@pytest.mark.parametrize("viewport", first_of([DESK, TELEPHONE]), ids=["wide", "telephone"])
def test_no_word_lies_on_another_or_on_what_it_is_not_of(newcomer, viewport):
    """Of every kind of model, and of models of many layers."""
    person, picture = opened(newcomer, viewport=viewport)
    for style in STYLES:
        show(person, picture, trace_of(style), Selection(query=9, target=8, rival=20))
        assert_words_apart(picture)
    for layers, heads in ((1, 1), (7, 3), (8, 8), (12, 12), (24, 14)):
        _kept, trace = deep(layers, heads)
        show(person, picture, trace, Selection(query=2))
        assert_words_apart(picture)


def assert_words_apart(picture: Locator):
    found = picture.evaluate(WORDS)
    left, top, right, bottom = found["sheet"]
    for i, (text, *edges) in enumerate(found["texts"]):
        assert edges[0] >= left - 0.5 and edges[1] >= top - 0.5, text
        assert edges[2] <= right + 0.5 and edges[3] <= bottom + 0.5, text
        for other, *around in found["texts"][:i]:
            assert overlap(edges, around) < 1.5, (text, other)
    for text, *edges in found["free"]:
        assert all(overlap(edges, around) < 2 for around in found["parts"]), text


def overlap(a: list[float], b: list[float]) -> float:
    """By how many pixels they lie on one another, in the direction in which it is less."""
    return min(min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1]))


def test_a_new_selection_changes_what_is_there_and_builds_nothing_anew(newcomer):
    person, picture = opened(newcomer)
    picture.evaluate("(map) => { for (const node of map.querySelectorAll('svg *')) node.kept = true; }")
    before = picture.locator(".part").first.get_attribute("aria-label")
    with person.redrawn(picture):
        person.chips.nth(3).click()
    assert picture.locator(".part").first.get_attribute("aria-label") != before
    assert picture.evaluate("(map) => [...map.querySelectorAll('svg *')].every((node) => node.kept)")


@pytest.mark.exhaustive
def test_nothing_moves_for_long_and_nothing_where_that_is_not_wanted(newcomer):
    person, picture = opened(newcomer)
    assert 0 < picture.evaluate(MOVING) <= 0.2
    person.page.emulate_media(reduced_motion="reduce")
    assert picture.evaluate(MOVING) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", first_of([1440, 1000, 620]))
def test_each_step_of_the_running_sum_is_below_its_part(newcomer, width):
    """To a fraction of a pixel, at every width."""
    person, picture = opened(newcomer)
    person.page.set_viewport_size({"width": width, "height": 900})
    plot = person.page.locator("#overview-sum .plot")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    person.page.wait_for_function("(plot) => plot._fullLayout?.width === plot.clientWidth", arg=plot.element_handle())
    middles = (
        "(nodes) => nodes.map((node) => { const { x, width } = node.getBoundingClientRect(); return x + width / 2; })"
    )
    steps = plot.locator(".barlayer .point path").evaluate_all(middles)
    parts = picture.locator(":is(.token, .addition, .norm, .lm_head) > .shape")
    kinds = parts.evaluate_all("(nodes) => nodes.map((node) => node.parentElement.classList[1])")
    places = dict(zip(map(tuple, enumerate(kinds)), parts.evaluate_all(middles), strict=True))
    wanted = [x for (_, kind), x in places.items() if kind in ("token", "addition")]
    wanted += [x for (_, kind), x in places.items() if kind == "norm"][-1:]
    wanted += [x for (_, kind), x in places.items() if kind == "lm_head"]
    assert steps == pytest.approx(wanted, abs=0.6)
