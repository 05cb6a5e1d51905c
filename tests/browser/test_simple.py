"""Simple page: its first state, first steps, and leaving it."""

import re

import pytest
from playwright.sync_api import expect

from explorer.views import SIMPLE

from .person import ANSWER


def card(person):
    return person.page.locator("#guess .guess")


def pressed_mode(person) -> str:
    return person.page.locator("#mode [aria-pressed=true]").text_content()


def test_a_newcomer_guesses_first_and_then_sees(newcomer):
    person = newcomer().open(view="")
    guess, answers = card(person).get_by_role("textbox"), card(person).get_by_role("listitem")
    expect(guess).to_be_visible()
    expect(answers.first).to_be_hidden()
    for hidden in (
        "#picker",
        "#views",
        "#next-token",
        "#more-settings",
        "#bar",
        "#run",
        "#steps",
        "#why-token",
        ".evidence-mark",
    ):
        expect(person.page.locator(hidden).first).to_be_hidden()
    primary = "button => getComputedStyle(button).backgroundColor"
    colour = card(person).locator(".see").evaluate(primary)
    alike = [b for b in person.page.locator("button:visible").all() if b.evaluate(primary) == colour]
    assert [button.text_content() for button in alike if "mode" not in (button.get_attribute("data-mode") or "")][
        -1:
    ] == ["See the model’s guesses"]
    guess.fill("the")
    guess.press("Enter")
    expect(answers).to_have_count(6)
    expect(answers.first).to_be_visible()
    expect(person.page.locator("#steps")).to_be_visible()
    expect(card(person).locator("output")).to_contain_text("place")
    shares = [float(text.rstrip("%")) for text in answers.locator(".percent").all_text_contents()]
    assert shares == sorted(shares, reverse=True)


def test_the_next_word_is_drawn_from_the_bars_and_told_as_long_as_it_is_the_last(newcomer):
    person = newcomer().open(view="")
    card(person).locator(".see").click()
    output, bars = card(person).locator("output"), card(person).get_by_role("listitem")
    expect(card(person)).to_contain_text("temperature 0.8, top-k 40")
    drawn_from = person.prediction.locator("tbody .probability .number").all_text_contents()  # of the full page
    percentages = bars.locator(".percent").all_text_contents()
    assert [float(share.rstrip("%")) for share in percentages] == pytest.approx(
        [100 * float(share) for share in drawn_from[: len(percentages)]], rel=0.05
    )
    before, shares = (
        person.chips.count(),
        dict(zip(bars.locator(".token").all_text_contents(), percentages, strict=True)),
    )
    card(person).get_by_role("button", name="Next word").click()
    expect(person.chips).to_have_count(before + 1)
    token = person.chips.last.text_content()
    expect(output).to_contain_text("fell on “" + token.replace(" ", "·"))
    expect(output).to_contain_text(f"its chance was {shares.get(token, '')}")
    person.run("the fox")
    expect(output).to_be_empty()


@pytest.mark.exhaustive
def test_a_guess_is_quoted_as_it_was_typed(newcomer):
    person = newcomer().open(view="")
    guess = card(person).get_by_role("textbox")
    guess.fill("Zorblat")
    guess.press("Enter")
    expect(card(person).locator("output")).to_contain_text("Your guess “Zorblat” could begin with")


@pytest.mark.exhaustive
def test_a_guess_is_about_its_place_alone(newcomer):
    person = newcomer().open(view="")
    guess, output = card(person).get_by_role("textbox"), card(person).locator("output")
    guess.fill("the")
    guess.press("Enter")
    expect(output).to_contain_text("Your guess")
    card(person).evaluate(
        """(card) => new MutationObserver(() => {
          const after = card.querySelector(".heading").textContent, said = card.querySelector("output").textContent;
          (window.seen ??= []).push(`${after}: ${said}`);
        }).observe(card, { childList: true, subtree: true, characterData: true })"""
    )
    before = card(person).locator(".heading").text_content()
    card(person).get_by_role("button", name="Next word").click()
    expect(output).to_contain_text("random number")
    observed = person.page.evaluate("window.seen")
    assert observed and not [text for text in observed if "Your guess" in text and not text.startswith(before)]
    assert "guess" not in person.at_rest().state or not person.state["guess"]


@pytest.mark.exhaustive
def test_the_colours_of_the_simple_page_are_surprisal_and_no_key_is_framed(newcomer):
    person = newcomer().open(view="looks", shade="rank")
    expect(person.page.locator("#strip select")).to_have_value("surprisal")
    key = person.chips.and_(person.page.locator(".key"))
    expect(key).to_have_css("border-top-color", "rgba(0, 0, 0, 0)")
    person.page.get_by_role("button", name="Numbers", exact=True).click()
    expect(person.page.locator("#strip select")).to_have_value("rank")


@pytest.mark.exhaustive
def test_elsewhere_in_the_text_the_button_leads_to_its_end(newcomer):
    person = newcomer().open(view="")
    card(person).locator(".see").click()
    person.chips.nth(2).click()
    expect(card(person).locator(".heading")).to_contain_text(person.chips.nth(2).text_content().strip())
    before = person.chips.count()
    card(person).get_by_role("button", name="To the end of the text").click()
    expect(card(person).get_by_role("button", name="Next word")).to_be_visible()
    assert person.chips.count() == before and person.state["query"] == before - 1


@pytest.mark.exhaustive
def test_an_empty_prompt_is_told_and_can_be_run_once_it_is_not(newcomer):
    person = newcomer().open(view="")
    person.prompt.fill("")
    run = person.page.get_by_role("button", name="Run", exact=True)
    run.click()
    expect(person.warning).to_contain_text("empty")
    expect(run).to_be_visible()
    person.prompt.fill("the fox")
    run.click()
    expect(person.strip).to_have_text("the fox")
    expect(run).to_be_hidden()


@pytest.mark.exhaustive
def test_later_visits_have_nothing_to_dismiss(newcomer):
    person = newcomer().open(view="")
    card(person).locator(".see").click()
    expect(card(person).get_by_role("listitem").first).to_be_visible()
    person.page.goto(person.address)
    expect(card(person).get_by_role("listitem").first).to_be_visible()
    card(person).get_by_role("button", name="Guess again").click()
    expect(card(person).get_by_role("textbox")).to_be_focused()
    expect(card(person).get_by_role("listitem").first).to_be_hidden()


def test_full_is_one_press_away_and_remembered(newcomer):
    person = newcomer().open(view="")
    person.page.get_by_role("button", name="Numbers", exact=True).click()
    expect(person.page.get_by_role("tab", name="Overview")).to_be_visible()
    expect(person.page.locator("#overview-map .map")).to_be_visible()
    person.expect_selected(view="overview")
    person.page.goto(person.address)
    expect(person.page.locator("#overview-map .map")).to_be_visible()
    assert pressed_mode(person) == "Numbers"
    person.page.get_by_role("button", name="Story", exact=True).click()
    expect(card(person)).to_be_visible()
    person.expect_selected(view="pieces")
    person.page.go_back()
    expect(person.page.locator("#overview-map .map")).to_be_visible()
    assert pressed_mode(person) == "Numbers"


@pytest.mark.exhaustive
def test_the_other_page_waits_until_there_is_something_to_show(newcomer):
    person, waiting, comes = newcomer(), [], False

    def hold(route):
        route.continue_() if comes else waiting.append(route)

    person.page.route(ANSWER, hold)  # Python's first answer is on its way
    person.page.goto(person.address)
    full = person.page.get_by_role("button", name="Numbers", exact=True)
    expect(full).to_be_disabled()
    comes = True
    for route in waiting:
        route.continue_()
    expect(full).to_be_enabled()
    full.click()
    expect(person.page.locator("#overview-map .map")).to_be_visible()


@pytest.mark.exhaustive
def test_every_step_has_a_picture_and_leads_further(newcomer):
    person = newcomer().open(SIMPLE[0].name)
    for step in SIMPLE:
        person.tab(step.title)
        person.expect_selected(view=step.name)
        plot = person.page.locator(f"#{step.name}-{step.panels[0].name} .plot")
        expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
        further = person.page.locator(f"#{step.name}-in-full a")
        expect(further).to_be_visible()
        further.click()
        assert person.state["view"] not in {step.name for step in SIMPLE}
        person.page.get_by_role("button", name="Story", exact=True).click()
        expect(plot).to_be_visible()


def test_on_a_telephone_the_button_and_the_answer_stay_in_reach(newcomer):
    person = newcomer(viewport={"width": 390, "height": 844}).open(view="")
    card(person).locator(".see").click()
    person.page.locator("#pieces-in-full").scroll_into_view_if_needed()
    for selector in (".next", ".first"):
        expect(card(person).locator(selector)).to_be_in_viewport()
    assert card(person).locator(".next").bounding_box()["height"] >= 44


@pytest.mark.exhaustive
def test_the_steps_begin_in_sight_after_the_guess(newcomer):
    person = newcomer(viewport={"width": 390, "height": 844}).open(view="")
    guess = card(person).get_by_role("textbox")
    guess.fill("the")
    guess.press("Enter")
    expect(card(person).locator("output")).to_contain_text("Your guess")
    expect(person.page.get_by_role("tab", name=SIMPLE[0].title)).to_be_visible()
    person.at_rest().page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    person.page.add_style_tag(content="#advice { display: none !important; }")  # which the small model always needs
    tab = person.page.get_by_role("tab", name=SIMPLE[0].title).bounding_box()
    pressed = card(person).locator(".act").bounding_box()  # at the bottom of a narrow screen, above all else
    assert tab["y"] + tab["height"] <= pressed["y"]
