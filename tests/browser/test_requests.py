"""Requests of the page: one per action, and animation frames only while something moves."""

import pytest
from playwright.sync_api import expect

from tests.exhaustive import exhaustive

from .person import ANSWER, collect_posts

# Gradio's own loading timer continues.
RECORD_FRAMES = """{
  const ask = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (act) => {
    if (!new Error().stack.includes("/statustracker-")) window.askedAt = performance.now();
    return ask(act);
  };
}"""


def test_opening_sends_one_request_and_idle_page_no_frames(open_new_page):
    person, addresses = open_new_page(), []
    person.page.add_init_script(RECORD_FRAMES)
    person.page.on("request", lambda request: addresses.append(request.url))
    with collect_posts(person) as posts:
        person.open()
    assert posts == ["/explorer/answer"]
    assert len([address for address in addresses if address.endswith("/plotly.js")]) == 1  # preloaded once, and used
    person.page.wait_for_function("performance.now() - window.askedAt > 400", polling=100)


def test_run_sends_one_request_and_draws_first_heatmap(person):
    person.wait_until_idle()
    with collect_posts(person) as posts:
        with person.wait_for_redraw(person.strip, person.pattern):
            person.prompt.fill("The owl asked the moon")
            person.prompt.press("Enter")
        assert posts == ["/explorer/answer"]
    expect(person.strip).to_have_text("The owl asked the moon")
    assert posts == ["/explorer/answer"]


@pytest.mark.parametrize("way", ["cell", "slider", "step", *map(exhaustive, ("token", "list", "tab", "undo"))])
def test_action_sends_one_request(person, way):
    if way == "undo":
        person.page.get_by_role("button", name="Step", exact=True).click()
        expect(person.page.locator("#undo")).to_be_enabled()
    person.wait_until_idle()
    if way == "slider":
        with person.page.expect_response("**/next_token_scores"):  # before the slider moves
            person.page.locator("#temperature input").first.hover()
    with collect_posts(person) as posts, person.wait_for_redraw(person.prediction):
        if way == "cell":
            person.click_cell(person.pattern, x=2, y=5)
        elif way == "token":
            person.chips.nth(3).click()
        elif way == "list":
            person.chooser("query").select_option("4")
        elif way == "tab":
            person.tab("Residual stream")
        elif way == "slider":
            person.set("temperature", 0.35)  # drawn immediately; requested once the slider rests
        else:
            person.page.locator(f"#{way}").press("Enter")  # a slider that moves below the pointer fetches scores
        person.page.evaluate("explorer.settled()")
    assert posts == ["/explorer/answer"]


def test_actions_before_answer_run_in_order(person):
    person.wait_until_idle()
    held, step = [], person.page.get_by_role("button", name="Step", exact=True)
    person.page.route(ANSWER, lambda route: held.append(route), times=1)
    with person.page.expect_request(ANSWER):
        person.choose_model("one-head")
    person.prompt.fill("The owl asked the moon")
    person.prompt.press("Enter")
    step.click()
    step.click()
    held[0].continue_()
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(2)
    expect(person.story.locator(".prompt")).to_have_text("The owl asked the moon")
    expect(person.page.locator("#facts")).to_contain_text("1 layer × 1 head")
