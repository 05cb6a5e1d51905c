"""Sampling settings: they change the table and the random pick, but resample nothing."""

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from explorer.web.widgets.next_token import NUM_ROWS

from .person import Person, count_draws


@pytest.fixture
def unchanged_text(person):
    """Fail if the tokens or the text were drawn again or changed."""
    drawings = (person.strip, person.story)
    before = [(count_draws(drawing), drawing.text_content()) for drawing in drawings]
    yield
    assert [(count_draws(drawing), drawing.text_content()) for drawing in drawings] == before


def find_rows(person: Person) -> Locator:
    return person.prediction.locator("tbody tr")


def find_headings(person: Person) -> Locator:
    return person.prediction.locator("thead th")


def find_cells(person: Person, name: str) -> Locator:
    return find_rows(person).locator(f".{name}")


def find_summary(person: Person) -> Locator:
    return person.page.locator("#next-token-words")


def find_all_tokens_checkbox(person: Person) -> Locator:
    """Return the checkbox with which top-k keeps all tokens."""
    return person.page.get_by_role("checkbox", name="all", exact=True)


def test_temperature_changes_columns_and_resamples_nothing(person, unchanged_text):
    before = float(find_cells(person, "probability").first.text_content())
    titles = ["token", "logit", "model", "÷ 0.8", "top-k 40", "after the settings", "sum so far"]
    expect(find_headings(person)).to_have_text(titles)
    person.set("temperature", 0.3)
    expect(find_headings(person).nth(3)).to_have_text("÷ 0.3")
    assert float(find_cells(person, "probability").first.text_content()) > before
    person.expect_selected(temperature=0.3)


def test_top_k_keeps_k_tokens_and_explains_cuts(person, unchanged_text):
    person.set("top-k", 3)
    expect(find_cells(person, "top_k")).to_have_text(["✓"] * 3 + ["cut"] * (NUM_ROWS - 3))
    assert sum(map(float, find_cells(person, "probability").all_text_contents())) == pytest.approx(1, abs=0.002)
    find_rows(person).nth(3).locator(".top_k").hover()
    expect(person.prediction.locator(".note")).to_have_text("rank 4 > top-k 3: cut")
    expect(find_summary(person)).to_contain_text("3 of 300")
    person.set("top-k", 0)
    expect(find_summary(person)).to_contain_text("300 of 300")
    expect(find_headings(person).filter(has_text="top-k")).to_have_count(0)


def test_top_k_ranges_from_1_to_100_or_keeps_all(person, unchanged_text):
    slider = person.slider("top-k")
    assert (slider.get_attribute("min"), slider.get_attribute("max")) == ("1", "100")
    person.set("top-k", 7)
    find_all_tokens_checkbox(person).check()
    person.expect_selected(top_k=0)
    expect(find_summary(person)).to_contain_text("300 of 300")
    person.set("temperature", 1.1)
    person.expect_selected(top_k=0, temperature=1.1)
    find_all_tokens_checkbox(person).uncheck()
    person.expect_selected(top_k=7)
    expect(slider).to_have_value("7")
    find_all_tokens_checkbox(person).check()
    person.expect_selected(top_k=0)
    person.set("top-k", 12)  # a slider that is moved keeps that many
    person.expect_selected(top_k=12)
    expect(find_all_tokens_checkbox(person)).not_to_be_checked()
    person.set("top-k", 0)
    expect(find_all_tokens_checkbox(person)).to_be_checked()


@pytest.mark.exhaustive
@pytest.mark.parametrize("pause_ms", [0, 400])
def test_typed_top_k_may_exceed_slider(person, unchanged_text, pause_ms):
    number = person.page.get_by_label("number input for top-k")
    number.fill("250")
    person.page.wait_for_timeout(pause_ms)
    number.blur()
    person.expect_selected(top_k=250)
    expect(find_summary(person)).to_contain_text("250 of 300")
    expect(number).to_have_value("250")
    expect(person.slider("top-k")).to_have_value("100")  # the slider's maximum
    person.set("temperature", 1.1)
    person.expect_selected(top_k=250, temperature=1.1)
    expect(number).to_have_value("250")


@pytest.mark.exhaustive
def test_url_and_browser_back_accept_any_top_k(open_new_page):
    person = open_new_page().open(top_k=0)
    for top_k, value, keeps_all in ((0, "40", True), (1000, "1000", False), (3, "3", False)):
        if top_k:
            person.restore_state({"top_k": top_k})
        expect(person.page.get_by_label("number input for top-k")).to_have_value(value)
        expect(find_all_tokens_checkbox(person)).to_be_checked(checked=keeps_all)
        person.expect_selected(top_k=top_k)


@pytest.mark.exhaustive
def test_further_settings_add_columns(person, unchanged_text):
    for name, value, heading in (
        ("number input for top-p", 0.5, "top-p 0.5"),
        ("number input for min-p", 0.9, "min-p 0.9"),
        ("number input for repetition penalty", 1.5, "penalty 1.5"),
    ):
        person.set_number(name, value)
        expect(find_headings(person).filter(has_text=heading)).to_have_count(1)
    person.set_number("stop text", "the end")
    person.expect_selected(top_p=0.5, min_p=0.9, repetition_penalty=1.5)
    person.wait_until("page.state.stop_strings === 'the end'")


@pytest.mark.exhaustive
def test_slider_can_be_reset(person):
    person.set("temperature", 0)
    expect(find_summary(person)).to_contain_text("1 of 300")
    person.page.get_by_role("button", name="Reset to default").first.click()
    expect(find_summary(person)).to_contain_text("40 of 300")
    person.expect_selected(temperature=0.8)
    person.page.locator("[data-mode=story]").click()
    for setting in ("temperature", "top_k"):
        person.page.locator(f"#{setting}").get_by_role("button", name="Reset to default").click()
    person.expect_selected(temperature=1, top_k=0)  # as a story begins
    expect(find_all_tokens_checkbox(person)).to_be_checked()
    expect(person.slider("temperature")).to_have_value("1")


def test_preset_sets_sliders_and_shows_as_pressed(person, unchanged_text):
    balanced, likeliest = (
        person.page.get_by_role("button", name=name) for name in ("balanced", "always the likeliest")
    )
    expect(balanced).to_have_attribute("aria-pressed", "true")
    person.page.get_by_label("number input for temperature").click()  # Gradio tells late that the box is left
    likeliest.click()
    expect(likeliest).to_have_attribute("aria-pressed", "true")
    expect(balanced).to_have_attribute("aria-pressed", "false")
    expect(person.slider("temperature")).to_have_value("0")
    expect(find_all_tokens_checkbox(person)).to_be_checked()
    expect(find_summary(person)).to_contain_text("1 of 300")
    person.set("temperature", 0.45)
    expect(likeliest).to_have_attribute("aria-pressed", "false")


def test_next_draw_changes_under_same_random_number(person, unchanged_text):
    marker, falls = person.draw.locator(".luck"), person.draw.locator(".falls")
    marker_style, drawn_stretch = marker.get_attribute("style"), person.draw.locator(".stretch.drawn")
    tokens = set()
    for temperature in (2, 0):
        with person.wait_for_redraw(person.prediction):
            person.set("temperature", temperature)
        person.wait_until_idle()  # the figure may be of the previous setting
        expect(drawn_stretch).to_have_count(1)
        tokens.add(falls.text_content().split("“")[1])
        assert marker.get_attribute("style") == marker_style
        lefts, widths = person.draw.locator(".stretch").evaluate_all(
            "all => ['left', 'width'].map((side) => all.map(({ style }) => parseFloat(style[side])))"
        )
        num_likeliest = min(9, len(lefts))  # the next one may represent all other tokens
        expected = [0, *np.cumsum(widths)][:num_likeliest]
        assert lefts[:num_likeliest] == pytest.approx(expected, abs=1e-3)
    assert len(tokens) == 2
    expect(falls).to_contain_text("Before the change it was")
    with person.wait_for_redraw(person.prediction):
        person.set("top-k", 7)  # without effect at temperature 0
    expect(falls).not_to_contain_text("Before the change")
    with person.wait_for_redraw(person.prediction):
        person.set_number("seed", 1)
    expect(marker).not_to_have_attribute("style", marker_style)
    person.set("temperature", 0.1)
    bar = find_rows(person).nth(5).locator(".bars b")
    expect(find_summary(person)).to_contain_text("of 300")
    before = person.wait_until_idle() and bar.evaluate("bar => parseFloat(bar.style.width)")
    person.draw.get_by_label("log bars").check()  # magnifies small probabilities
    assert bar.evaluate("bar => parseFloat(bar.style.width)") > before + 5


def test_any_token_can_be_searched(person, unchanged_text):
    search = person.draw.get_by_role("searchbox")
    with person.wait_for_redraw(person.prediction):
        search.press_sequentially("2")
    matches = person.prediction.locator("tr.found")
    assert matches.count() > 0 and find_rows(person).count() > NUM_ROWS
    assert "2" in matches.evaluate_all("rows => rows.map((row) => row.dataset.token)")
    person.expect_selected(find="2")


@pytest.mark.exhaustive
def test_search_survives_reload(open_new_page):
    person = open_new_page().open(find="2")
    matches = person.prediction.locator("tr.found")
    person.page.reload()
    expect(person.draw.get_by_role("searchbox")).to_have_value("2")
    expect(matches.first).to_be_visible()
    person.draw.get_by_role("searchbox").fill("")
    expect(find_rows(person)).to_have_count(NUM_ROWS)


@pytest.mark.exhaustive
def test_actual_token_is_marked_at_any_rank(person):
    for position in (0, 3, 6):
        with person.wait_for_redraw(person.prediction):
            person.chips.nth(position).click()
        expect(person.prediction.locator("tr.actual .text")).to_have_text(person.chips.nth(position + 1).text_content())


@pytest.mark.exhaustive
def test_numbers_are_explained_by_keyboard(person):
    cell = find_rows(person).first.locator(".token")
    cell.focus()
    cell.press("ArrowDown")
    person.page.keyboard.press("ArrowRight")
    expect(find_rows(person).nth(1).locator(".logit")).to_be_focused()
    person.page.keyboard.press("ArrowRight")
    note = person.prediction.locator(".note")
    expect(note).to_contain_text("/ Σ e^logits =")
    person.page.keyboard.press("ArrowRight")
    expect(note).to_contain_text("/ 0.8 =")
    with person.wait_for_redraw(person.prediction):
        person.set("temperature", 0.5)
    find_rows(person).nth(1).locator(".scaled").focus()
    expect(note).to_contain_text("/ 0.5 =")


@pytest.mark.exhaustive
def test_another_token_can_be_taken(person):
    row = find_rows(person).nth(4)
    token, chips = row.locator(".text").text_content(), person.chips.count()
    row.hover()
    row.get_by_role("button", name="pick").click()
    expect(person.chips).to_have_count(chips + 1)
    expect(person.chips.last).to_have_text(token)
