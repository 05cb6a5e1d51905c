"""Sampling sliders: the table follows them without a request, and then shows Python's answer."""

import numpy as np
import pytest
from playwright.sync_api import expect

from .legibility import BEAMER, assert_legible

READ_TABLE = """() => ({
  scale: 100 / Number(/\\d+/.exec(document.querySelector("#answer .scale").innerText)?.[0] ?? 100),
  heads: [...document.querySelectorAll("#next-token thead th")].map((cell) => cell.innerText),
  drawn: [...document.querySelectorAll("#next-token tbody tr")]
    .filter((row) => row.querySelector(".tag").innerText.includes("Step picks")).map((row) => row.dataset.token),
  rows: Object.fromEntries([...document.querySelectorAll("#next-token tbody tr")].map((row) => [row.dataset.token, {
    percent: parseFloat(row.querySelector(".bars b").style.width),
    plain: parseFloat(row.querySelector(".bars b + *").style.left),
    cells: [...row.cells].slice(1).map((cell) => cell.innerText),
    notes: [...row.cells].slice(1).map((cell) => cell.dataset.note),
  }])),
})"""


BESIDE = """() => {
  const box = (selector) => document.querySelector(selector).getBoundingClientRect();
  const [figure, bars, slider] = [box(".presented"), box("#next-token table"), box("#top_k input[type=range]")];
  return figure.right <= bars.left && bars.bottom <= slider.top && slider.right <= innerWidth;
}"""


@pytest.mark.exhaustive
def test_temperature_curves_have_line_at_slider_value(open_new_page):
    """Without asking Python; presented, the sliders are beside them and move them, and the bars keep their scale."""
    person = open_new_page(viewport=BEAMER).open("choosing", depth="story", temperature=0.8)
    line = "() => document.querySelector('#choosing-temperature .plot').layout?.shapes?.map(({ x0, x1 }) => [x0, x1])"
    person.page.wait_for_function(f"JSON.stringify(({line})()) === '[[0.8,0.8]]'")
    expect_bars_match_lines(person)
    held = []
    person.page.route("**/explorer/answer", lambda route: held.append(route))
    person.set("temperature", 1.3)
    person.page.wait_for_function(f"JSON.stringify(({line})()) === '[[1.3,1.3]]'")
    person.page.evaluate("document.activeElement.blur()")
    person.page.keyboard.press("p")
    expect(person.page.locator("#choosing-temperature.presented")).to_be_visible()
    assert person.page.evaluate(BESIDE)
    scale = person.page.locator("#answer .scale")
    for temperature in (0.05, 1.3):
        person.set("temperature", temperature)
        person.page.wait_for_function(f"JSON.stringify(({line})()) === '[[{temperature},{temperature}]]'")
        expect(scale).to_have_text("")  # the whole track is 100%, so that the bars' lengths compare
    person.set("top-k", 1)
    axis = person.page.locator("#choosing-temperature .ytitle")
    expect(axis).to_have_text("probability with top-k 1")
    person.page.keyboard.press("Escape")
    person.page.unroute_all(behavior="ignoreErrors")
    person.set("temperature", 0.8)
    person.wait_until_idle()
    person.page.keyboard.press("p")
    expect(person.page.locator("#answer .tag:not(:empty)")).to_be_visible()
    assert_legible(person.page)
    person.page.keyboard.press("Escape")


ORDERED_SELECTORS = (
    "#choosing-temperature .plot",
    "#temperature input[type=range]",
    "#choosing-in-full",
    "#next-token table",
)


def expect_bars_match_lines(person):
    """Expect the first bars to have the names and colours of the lines; on a phone: lines, slider, bars."""
    page = person.page
    names, colours = page.evaluate(
        """() => {
          const { data } = document.querySelector("#choosing-temperature .plot");
          return [data.map(({ name }) => name), data.map(({ line }) => line.color)];
        }"""
    )
    rows = page.evaluate(
        """() => [...document.querySelectorAll("#next-token tbody tr")].map((row) => [
          row.querySelector(".text").textContent, getComputedStyle(row.querySelector(".bars b")).backgroundColor])"""
    )
    around = "\u2068\u2069· "
    assert [colour for _text, colour in rows[: len(names)]] == [to_css_rgb(colour) for colour in colours]
    for (text, _colour), name in zip(rows, names, strict=False):
        assert not text.isprintable() or text.strip(around) == name.strip(around)
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("#choosing-temperature").scroll_into_view_if_needed()
    figure, slider, further, bars = (page.locator(selector).bounding_box() for selector in ORDERED_SELECTORS)
    assert 0 <= slider["y"] - figure["y"] - figure["height"] < 40
    assert slider["y"] + slider["height"] < further["y"] and further["y"] + further["height"] < bars["y"]
    page.locator("#tail [data-shows=sliders]").click()  # moves the sliders next to the bars
    page.locator("#next-token").scroll_into_view_if_needed()
    expect(page.locator(ORDERED_SELECTORS[1])).to_be_in_viewport()
    page.locator("#tail [data-shows=sliders]").click()
    page.set_viewport_size({"width": 1440, "height": 900})


def to_css_rgb(colour: str) -> str:
    """Return a colour "#rrggbb" in the browser's notation."""
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


def test_bars_follow_slider_and_match_python(open_new_page):
    settings = {"temperature": 0.8, "top_k": 3, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.3}
    person = open_new_page().open("attention", **settings)
    page, held = person.page, []
    track, box = (page.locator(f"#top_k input[type={kind}]").bounding_box() for kind in ("range", "number"))
    assert track["x"] + track["width"] <= box["x"]
    with page.expect_response("**/next_token_scores"):
        page.locator("#top_k input").first.hover()
    page.route("**/explorer/answer", lambda route: held.append(route))  # held back until the browser has drawn
    for setting, value in {"temperature": 1.35, "top_k": 6, "top_p": 0.55, "min_p": 0.4}.items():
        before = page.evaluate(READ_TABLE)
        page.locator(f"#{setting} input[type=number]").evaluate(
            "(box, value) => { box.value = value; box.dispatchEvent(new Event('input', { bubbles: true })); }", value
        )
        page.wait_for_function(f"before => JSON.stringify(({READ_TABLE})()) !== JSON.stringify(before)", arg=before)
        in_browser = page.evaluate(READ_TABLE)
        while not held:  # Python is asked once the slider rests
            page.wait_for_timeout(50)
        held.pop().continue_()
        page.evaluate("explorer.settled()")
        answered = page.evaluate(READ_TABLE)
        assert in_browser["heads"] == answered["heads"] and answered["drawn"], setting
        assert [token for token in answered["drawn"] if token in in_browser["rows"]] == in_browser["drawn"], setting
        both = in_browser["rows"].keys() & answered["rows"].keys()  # the random number may fall on another token
        assert len(both) >= 8
        for token in both:
            for texts in ("cells", "notes"):
                assert in_browser["rows"][token][texts] == answered["rows"][token][texts], setting
            assert in_browser["rows"][token]["percent"] == pytest.approx(answered["rows"][token]["percent"], abs=1e-4)
            model = in_browser["rows"][token]["cells"][in_browser["heads"].index("model") - 1]
            assert in_browser["rows"][token]["plain"] == pytest.approx(
                100 * in_browser["scale"] * float(model), rel=1e-2
            ), setting
    person.draw.get_by_label("log bars").check()
    by_powers = page.evaluate(READ_TABLE)
    for row in by_powers["rows"].values():
        share = 1 + np.log10(float(row["cells"][by_powers["heads"].index("model") - 1])) / 6
        assert row["plain"] == pytest.approx(100 * max(0, share), abs=0.1)


def test_full_length_of_bars_holds_during_drag_and_depends_on_state_alone_after(open_new_page):
    person = open_new_page().open("attention", depth="numbers", temperature=1)
    page, scale = person.page, person.page.locator("#answer .scale")
    expect(scale).to_contain_text("full bar")
    box = page.locator("#temperature input[type=range]").bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 1, y, steps=4)
    expect(scale).to_have_text("")
    page.mouse.move(box["x"] + box["width"] / 2, y, steps=4)
    person.wait_until_idle()
    expect(scale).to_have_text("")  # so that lengths compare
    page.mouse.up()
    expect(scale).to_contain_text("full bar")
    released = scale.text_content()
    person.wait_until_idle()
    page.reload()
    expect(scale).to_have_text(released)
