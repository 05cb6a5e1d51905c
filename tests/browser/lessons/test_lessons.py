"""Lessons from start to end: questions come before answers, and a lesson can be left at any step."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.exhaustive import exhaustive

from ..conftest import DESK
from ..legibility import BEAMER
from .steps import (
    CORE_LESSON,
    LESSONS,
    PHONE,
    expect_step,
    find_lesson,
    get_figure,
    open_lesson,
    open_next_step,
    reply,
    steps_by_question_kind,
)


def test_lesson_runs_to_its_end(page, bundled_address):
    lesson = LESSONS[CORE_LESSON]
    open_lesson(page, bundled_address, lesson=CORE_LESSON)
    for number, step in enumerate(lesson.steps, 1):
        expect_step(page, step, number, len(lesson.steps))
        if step.question:
            reply(page, step)
        if step.question or not step.task:
            expect(find_lesson(page).locator(".after > *")).to_have_count(len(step.after))
        else:
            expect(find_lesson(page).locator(".verdict p")).not_to_have_text(re.compile("^✓"))
            expect(find_lesson(page).locator(".after > *")).to_have_count(0)
        find_lesson(page).get_by_role("button", name="Next" if number < len(lesson.steps) else "Finish").click()
    expect(find_lesson(page).locator("h2")).to_have_text(f"Done: {lesson.title}")
    following = list(LESSONS)[list(LESSONS).index(CORE_LESSON) + 1]
    expect(find_lesson(page).locator(".after")).to_contain_text(LESSONS[following].title)
    find_lesson(page).get_by_role("button", name="Close").click()
    expect(find_lesson(page)).to_be_hidden()
    page.get_by_role("button", name="Learn").click()
    row = page.locator("#lessons .all .one").filter(has_text=lesson.title)
    expect(row).to_contain_text(f"✓ {lesson.title}")
    expect(row).not_to_contain_text("go on with")
    assert "lesson=" not in page.url or page.wait_for_function("!location.search.includes('lesson=')")


@pytest.mark.exhaustive
def test_every_question_kind_accepts_reply(page, bundled_address):
    for name, number in steps_by_question_kind():
        open_lesson(page, bundled_address, lesson=name, step=number)
        step = LESSONS[name].step(number)
        expect_step(page, step, number, len(LESSONS[name].steps))
        reply(page, step)
        expect(find_lesson(page).locator(".after > *")).to_have_count(len(step.after))


def test_reply_belongs_to_its_step_and_survives_reload(page, bundled_address):
    open_lesson(page, bundled_address, lesson="tokens-and-merges", step=4)
    question = find_lesson(page).locator(".question")
    question.locator(".option").nth(2).click()
    expect(find_lesson(page).locator(".verdict p")).to_contain_text("✓ Right, well done.")
    expect(question.locator(".is-right")).to_have_text(re.compile("about 4,000.*✓ right.*your reply"))
    expect(question.locator(".option").nth(2)).to_contain_class("is-yours")
    page.wait_for_function("location.search.includes('reply=4')")
    page.reload()
    expect(find_lesson(page).locator(".verdict p")).to_contain_text("✓ Right, well done.")
    open_next_step(page)
    expect(find_lesson(page).locator("h2")).to_have_text(LESSONS["tokens-and-merges"].step(5).title)
    expect(find_lesson(page).locator(".verdict")).to_have_text("")
    expect(question.locator("button.option")).to_have_count(3)
    find_lesson(page).get_by_role("button", name="Back").click()
    expect(find_lesson(page).locator(".verdict p")).to_contain_text("✓ Right, well done.")
    question.get_by_role("button", name="Ask me again").click()
    expect(question.locator("button.option")).to_have_count(4)


def test_verdict_is_visible_on_phone_after_reply(page, bundled_address):
    page.set_viewport_size(PHONE)
    open_lesson(page, bundled_address, lesson="tokens-and-merges", step=2)
    find_lesson(page).get_by_role("button", name="Reply", exact=True).click()
    expect(find_lesson(page).locator(".verdict p")).to_be_in_viewport(ratio=0.9)
    assert page.evaluate("scrollY") == 0


def test_lesson_about_tokens_fits_laptop(page, bundled_address):
    """One row of tokens, the verdict with its explanation in sight, and one cover for all that is covered."""
    page.set_viewport_size({"width": 1366, "height": 768})
    open_lesson(page, bundled_address, lesson="tokens-and-merges", step=1)
    tops = page.locator("#strip .chip").evaluate_all("(chips) => chips.map(({ offsetTop }) => offsetTop)")
    assert len(tops) > 1 and len(set(tops)) == 1
    find_lesson(page).locator("button.option").first.click()
    for part in (".verdict p", ".after p"):
        expect(find_lesson(page).locator(part)).to_be_in_viewport(ratio=0.95)
    open_lesson(page, bundled_address, lesson="tokens-and-merges", step=2)
    expect(find_lesson(page).get_by_role("button", name="Reply", exact=True)).to_be_visible()
    covered = "({ name }) => getComputedStyle(document.querySelector(name), '::after').content"
    assert page.evaluate(covered, {"name": "#strip"}) == "none"
    assert page.evaluate(covered, {"name": "#tokens-merges"}) == '"Shown once you have replied."'


@pytest.mark.exhaustive
def test_question_fits_projector_before_reply(page, bundled_address):
    page.set_viewport_size(BEAMER)
    open_lesson(page, bundled_address, lesson="residual-stream", step=5)
    expect(find_lesson(page).locator(".question .quiet")).to_be_in_viewport(ratio=0.9)
    page.set_viewport_size(DESK)


def test_sheet_of_lesson_covers_no_part_of_figure_on_projector(page, bundled_address):
    """Neither the last row of a table nor an axis title, also below the line of a class."""
    page.set_viewport_size(BEAMER)
    bottom = "(node) => node.getBoundingClientRect().bottom"
    open_lesson(page, bundled_address, lesson="tokens-and-merges", step=4)
    last_row = page.locator("#tokens-table .heatmap-label").last
    expect(last_row).to_be_visible()
    assert last_row.evaluate(bottom) < find_lesson(page).bounding_box()["y"]
    open_lesson(page, bundled_address, lesson="who-looks-at-whom", step=2)
    find_lesson(page).locator("button.option").first.click()
    expect(find_lesson(page).locator(".verdict p")).to_be_visible()
    line_height = page.evaluate("document.body.classList.add('in-room'), 37")
    page.evaluate("dispatchEvent(new Event('resize'))")
    title = page.locator("#attention-pattern .xtitle")
    page.wait_for_function("document.querySelector('#attention-pattern .plot').clientHeight < 300")
    page.evaluate("window.explorer.settled()")
    assert title.evaluate(bottom) + line_height < find_lesson(page).bounding_box()["y"]
    page.set_viewport_size(DESK)


def test_phone_shows_button_bar_only_in_generation_steps(page, bundled_address):
    page.set_viewport_size(PHONE)
    open_lesson(page, bundled_address, lesson="choosing-the-next-word", step=9)
    expect(find_lesson(page).locator("h2")).to_be_in_viewport()
    page.get_by_role("button", name="Step", exact=True).click()  # fails if the lesson's sheet covers it
    open_lesson(page, bundled_address, lesson="tokens-and-merges", step=2)
    expect(find_lesson(page).locator("h2")).to_be_in_viewport()
    expect(page.locator("#bar")).to_be_hidden()


EMPHASIZED_TEXTS = "[...document.querySelectorAll('#lesson .told em')].map(({ textContent }) => textContent)"


@pytest.mark.parametrize(
    ("lesson", "number"), [("choosing-the-next-word", 9), exhaustive(pytest.param("who-looks-at-whom", 8))]
)
def test_named_button_is_visible_and_slide_hints_at_it(page, bundled_address, lesson, number):
    open_lesson(page, bundled_address, lesson=lesson, step=number)
    step = LESSONS[lesson].step(number)
    if step.question:
        reply(page, step)
        expect(find_lesson(page).locator(".after em").first).to_be_visible()
    names = [name for name in page.evaluate(EMPHASIZED_TEXTS) if name[0].isupper()]
    assert names
    for name in names:
        expect(page.get_by_role("button", name=name).locator("visible=true").first).to_be_in_viewport()
    page.locator("#present-lesson").click()
    hint, at = page.locator("#stage .keys"), page.locator("#stage .at")
    expect(at).to_contain_text(str(number))
    while hint.text_content() != "The button is on the page: press Esc.":
        expect(page.locator("#stage .next")).to_be_enabled()  # one of the slides has the hint
        page_number = at.text_content()
        page.keyboard.press("ArrowRight")
        expect(at).not_to_have_text(page_number)
    page.keyboard.press("Escape")


@pytest.mark.exhaustive
def test_browser_back_returns_to_previous_step(page, bundled_address):
    open_lesson(page, bundled_address, lesson=CORE_LESSON)
    heading, titles = find_lesson(page).locator("h2"), [step.title for step in LESSONS[CORE_LESSON].steps]
    expect(heading).to_have_text(titles[0])
    open_next_step(page)
    expect(heading).to_have_text(titles[1])
    open_next_step(page)
    expect(heading).to_have_text(titles[2])
    page.go_back()
    expect(heading).to_have_text(titles[1])
    page.go_back()
    expect(heading).to_have_text(titles[0])


@pytest.mark.exhaustive
def test_lesson_can_be_left_and_resumed_from_first_page(page, bundled_address):
    page.goto(bundled_address)
    page.get_by_role("button", name="Learn").click()
    rows = page.locator("#lessons .all .one")
    expect(rows).to_have_count(len(LESSONS) + 1)
    rows.filter(has_text="What norms do").click()
    expect(find_lesson(page).locator(".of")).to_contain_text("1 of")
    expect(
        page.locator("#residual-lengths .main-svg").first
    ).to_be_visible()  # the step's tab, opened from the simple page
    open_next_step(page)
    expect(find_lesson(page).locator(".of")).to_contain_text("2 of")
    find_lesson(page).get_by_role("button", name="Leave").click()
    page.get_by_role("button", name="Learn").click()
    row = rows.filter(has_text="What norms do")
    expect(row).to_contain_text("go on with step 2")
    page.keyboard.press("Escape")
    expect(rows.first).to_be_hidden()
    page.get_by_role("button", name="Learn").press("Enter")
    row.click()
    expect(find_lesson(page).locator(".of")).to_contain_text("2 of")


def test_leaving_lesson_restores_text_and_view(page, bundled_address):
    page.goto(f"{bundled_address}?text=The+owl+was+wise&view=tokens&depth=numbers")
    page.get_by_role("button", name="Learn").click()
    page.locator("#lessons .one").filter(has_text="Attention: who looks at whom").click()
    open_next_step(page)
    next_button = find_lesson(page).locator(".next")
    expect(next_button).to_have_text("Skip")  # an unanswered question
    find_lesson(page).locator(".question .option").first.click()
    expect(next_button).to_have_text("Next")
    find_lesson(page).get_by_role("button", name="Leave").click()
    expect(page.locator("#prompt textarea")).to_have_value("The owl was wise")
    page.wait_for_function("explorer.state.view === 'tokens' && explorer.state.depth === 'numbers'")
    expect(page.locator("#tokens-tab")).to_be_visible()


@pytest.mark.exhaustive
def test_lesson_text_is_escaped_and_missing_model_is_named(page, bundled_address):
    open_lesson(page, bundled_address, lesson="of-a-teacher", checkpoint="llama-fables-gpt")
    expect(find_lesson(page).locator(".question p")).to_contain_text("no-such-model, which is not here")
    expect(find_lesson(page).locator("h2")).to_have_text("A <i>step</i>")
    expect(find_lesson(page).locator(".before p")).to_have_text("<script>alert(1)</script> {{1+1}} ${1+1}")
    against = "You may think that <img src=x onerror=alert(1)>. It is not so."
    expect(find_lesson(page).locator(".against")).to_have_text(against)
    expect(find_lesson(page).locator(":is(img, i, b, script)")).to_have_count(0)
    find_lesson(page).get_by_role("button", name="Use llama-fables instead").click()
    expect(find_lesson(page).locator(".note")).to_have_text(
        "no-such-model is not here: all numbers are from llama-fables."
    )
    expect(page.locator("#picker select")).to_have_value("llama-fables")
    expect(page.locator("#strip .chip")).to_have_count(6)


@pytest.mark.exhaustive
def test_task_shows_what_it_needs_and_accepts_chosen_head(page, bundled_address):
    open_lesson(page, bundled_address, lesson="silencing", step=4)
    expect(page.locator("#experiments-what-ifs .fold")).to_be_in_viewport()  # the step names the button Change
    expect(page.locator("#next-token")).to_be_in_viewport()
    unused = "#mode, #navigation, #prompt-row, #bar, #again, #written, #questions, #sampling, .view-tools > .block"
    expect(page.locator(f":is({unused}):not(#experiments-what-ifs):visible")).to_have_count(0)
    open_lesson(page, bundled_address, lesson=CORE_LESSON, step=len(LESSONS[CORE_LESSON].steps))
    verdict = find_lesson(page).locator(".verdict p")
    expect(verdict).to_contain_text("You chose layer 0 head 0")
    expect(page.locator(f":is({unused}, #generation):visible")).to_have_count(0)
    expect(get_figure(page, "attention-pattern")).to_be_in_viewport()  # beside the heads: what the chosen one does
    page.evaluate("explorer.select({ layer: 5, head: 5 })")
    expect(verdict).to_have_text(re.compile("^✓ You chose layer 5 head 5"))
    expect(find_lesson(page).locator(".after p").first).to_be_visible()


@pytest.mark.exhaustive
def test_step_sets_sampling_slider(page, bundled_address):
    open_lesson(page, bundled_address, lesson="choosing-the-next-word", step=3)
    expect(find_lesson(page).locator(".of")).to_contain_text("3 of")
    open_next_step(page)
    expect(page.get_by_role("slider", name="temperature")).to_have_value("0.5")


@pytest.mark.exhaustive
def test_lesson_is_folding_sheet_on_phone(open_new_page, bundled_address):
    page = open_new_page(address=bundled_address, viewport=PHONE).page
    open_lesson(page, bundled_address, lesson=CORE_LESSON, step=2)
    expect(find_lesson(page).locator(".question .option").first).to_be_visible()
    assert find_lesson(page).bounding_box()["height"] <= 0.63 * PHONE["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    expect(find_lesson(page).locator(".leave")).to_be_in_viewport(ratio=1)
    buttons = find_lesson(page).locator(":is(header, nav) button:visible")
    right_edges = buttons.evaluate_all("(all) => all.map((button) => button.getBoundingClientRect().right)")
    assert max(right_edges) == pytest.approx(PHONE["width"] - 6, abs=1)
    assert bottom_edge(find_lesson(page)) == pytest.approx(PHONE["height"], abs=1)
    page.get_by_role("button", name="fold the lesson").click()
    expect(find_lesson(page).locator(".question .option").first).to_be_hidden()
    assert find_lesson(page).bounding_box()["height"] < 60
    page.evaluate("explorer.select({ view: 'residual' })")  # where the whole page is visible
    expect(page.locator("#step")).to_be_visible()
    assert bottom_edge(find_lesson(page)) <= page.locator("#step").bounding_box()["y"]


def bottom_edge(box: Locator) -> float:
    """Return the y coordinate of a box's bottom in pixels."""
    return sum(box.bounding_box()[side] for side in ("y", "height"))


def test_step_highlights_its_figure_and_refuses_non_numbers(open_new_page, bundled_address):
    """Without a lesson the URL has no lesson fields, and hidden panels leave no labels behind."""
    person = open_new_page(address=bundled_address)
    page, move = person.page, "actions.makeMove({ kind: 'lesson', lesson: given[0], step: given[1], reply: '' })"
    page.goto(bundled_address)
    page.wait_for_function("location.search.includes('checkpoint=')")
    assert not re.search("lesson|step=|reply", page.url)
    expect(find_lesson(page)).to_be_hidden()
    person.evaluate(move, ["choosing-the-next-word", 7])
    expect(page.locator(".pointed-out")).to_have_id("next-token")
    for field in ("target", "rival"):
        label = page.locator(f"#prediction-choosers label:has([data-field={field}])")
        expect(label).to_have_count(1)
        expect(label).to_be_hidden()
    person.evaluate(move, [CORE_LESSON, 4])
    box, refusal = find_lesson(page).locator(".question input"), find_lesson(page).get_by_role("alert")
    for reply_text, message in {
        "abc": "“abc” is no number",
        "": "A blank is empty",
        "0x1": "“0x1” is no number",
    }.items():
        box.fill(reply_text)
        find_lesson(page).get_by_role("button", name="Reply", exact=True).click()
        expect(refusal).to_contain_text(message)
        expect(box).to_be_focused()
    box.fill("−0,25")
    box.press("Enter")
    expect(find_lesson(page).locator(".verdict p")).to_have_text(re.compile("^[✓✗]"))
