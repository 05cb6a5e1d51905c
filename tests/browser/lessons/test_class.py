"""A class with a teacher and two students, each in a browser of their own: joining, following, replying, closing."""

import re
from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect

from ..conftest import BROWSER_ARGS, DESK, find_executable, make_person
from ..person import Person
from .steps import LESSONS, PHONE, find_lesson

QUESTION_STEP = "tokens-and-merges", 4  # a lesson, and a step of it with a choice question


@pytest.fixture
def new_user(playwright, bundled_address) -> Iterator[Callable[..., Person]]:
    """Function that opens a page in a browser of its own: pages of one browser share six connections to a server."""
    browsers, people = [], []

    def new_user(address=bundled_address, **options) -> Person:
        browsers.append(playwright.chromium.launch(executable_path=find_executable(playwright), args=BROWSER_ARGS))
        person = make_person(browsers[-1].new_context(), address, **options)
        person.asked = []
        person.page.on("request", lambda request: person.asked.append(f"{request.url} {request.post_data or ''}"))
        people.append(person)
        return person

    yield new_user
    for browser in browsers:
        browser.close()
    assert [complaint for person in people for complaint in person.complaints] == []


def find_panel(teacher: Person) -> Locator:
    return teacher.page.locator("#room .list")


def find_class_line(student: Person) -> Locator:
    return student.page.locator("#room-line")


def open_room(teacher: Person) -> tuple[str, str]:
    """Open a room as the teacher; return its code and its link."""
    teacher.page.get_by_role("button", name="Class", exact=True).click()
    find_panel(teacher).get_by_role("button", name="Open a room").click()
    code = find_panel(teacher).locator(".code")
    expect(code).to_have_text(re.compile(r"^[0-9A-Z]{5}-[0-9A-Z]{5}$"))
    return code.inner_text(), find_panel(teacher).locator(".link").get_attribute("href")


def test_class_panel_closes_with_escape_or_another_list(new_user):
    teacher = new_user().open()
    teacher.page.get_by_role("button", name="Class", exact=True).click()
    expect(find_panel(teacher).get_by_label("Code")).to_be_focused()  # a student types the code at once
    teacher.page.keyboard.press("Escape")
    open_room(teacher)
    teacher.page.locator("#view").click(position={"x": 5, "y": 400})
    expect(find_panel(teacher)).to_be_visible()  # the teacher can work on the page meanwhile
    expect(find_panel(teacher).locator(".local")).to_be_visible()  # the URL works on this machine only
    teacher.page.keyboard.press("Escape")
    expect(find_panel(teacher)).to_be_hidden()
    teacher.page.get_by_role("button", name=re.compile("^Class")).click()
    expect(find_panel(teacher)).to_be_visible()
    teacher.page.get_by_role("button", name="Learn").click()
    expect(find_panel(teacher)).to_be_hidden()
    expect(teacher.page.locator("#lessons .one").first).to_be_visible()
    teacher.page.keyboard.press("Escape")
    teacher.page.get_by_role("button", name=re.compile("^Class")).click()
    find_panel(teacher).get_by_label("the class follows me").blur()
    teacher.page.keyboard.press("p")
    expect(teacher.page.locator("#stage .stage")).to_be_visible()
    expect(find_panel(teacher)).to_be_hidden()  # it would cover the figure


@pytest.mark.exhaustive
def test_first_visitor_sees_at_once_what_teacher_shows_and_presents(new_user):
    teacher, student = new_user().open(), new_user()
    teacher.page.evaluate("explorer.select({ view: 'overview', depth: 'story' })")
    _code, link = open_room(teacher)
    teacher.page.keyboard.press("Escape")
    student.page.goto(link)
    expect(find_class_line(student)).to_contain_text("you follow the teacher")
    expect(student.page.locator("#steps")).to_be_visible()
    guess = student.page.locator("#guess form")
    expect(guess).to_be_hidden()  # nothing is asked before
    student.page.get_by_role("button", name="Guess again").click()
    expect(guess).to_be_visible()
    teacher.page.evaluate("explorer.select({ view: 'attention', depth: 'numbers' })")
    student.wait_until("page.state.view === 'attention'")
    expect(guess).to_be_hidden()
    teacher.wait_until_idle().page.keyboard.press("p")
    expect(teacher.page.locator("#stage .stage")).to_be_visible()
    teacher.page.keyboard.press("End")
    last = teacher.page.locator(".presented:not(#attention-heads, #attention-pattern)")
    expect(last).to_have_count(1)
    expect(student.page.locator(f"#{last.get_attribute('id')} [data-draws]")).to_be_in_viewport(ratio=0.5)


@pytest.mark.exhaustive
def test_class_follows_replies_and_ends(new_user, bundled_address):
    teacher = new_user().open(text="The cat saw the dog and the dog saw")
    lesson, step = QUESTION_STEP
    tried = {lesson: {"step": step, "replies": {step: f"{step}:1"}}}  # the teacher tried the step before
    teacher.page.evaluate("(tried) => localStorage.setItem('explorer:lessons', JSON.stringify(tried))", tried)
    code, link = open_room(teacher)
    assert teacher.page.evaluate("JSON.parse(localStorage.getItem('explorer:lessons'))") == {
        lesson: {"step": step, "replies": {}}
    }
    assert link == f"{bundled_address}?room={code.replace('-', '')}"
    first, second = new_user(), new_user()
    first.page.goto(link)
    expect(find_class_line(first)).to_contain_text(f"Class {code}: you follow the teacher.")
    first.wait_until(
        "page.state.view === 'attention' && page.state.prompt?.length === given", len(teacher.state["prompt"])
    )
    second.open("tokens")
    second.page.get_by_role("button", name="Class", exact=True).click()
    second.page.locator("#room").get_by_label("Code").fill(f" {code.lower().replace('5', 's').replace('2', 'z')} ")
    second.page.locator("#room").get_by_label("Code").press("Enter")
    expect(find_class_line(second)).to_contain_text("you follow the teacher")
    expect(find_class_line(second)).to_contain_text(f"Class {code}: ")  # as the teacher's
    second.wait_until("page.state.view === 'attention'")
    expect(second.prompt).to_have_value("The cat saw the dog and the dog saw")
    expect(find_panel(teacher).locator(".people")).to_have_text("2 students are there")
    teacher.chips.nth(2).click()
    for student in (first, second):
        student.wait_until("page.state.query === 2")
    first.page.get_by_role("button", name="On my own").click()
    expect(find_class_line(first)).to_contain_text("you look around on your own")
    teacher.tab("Residual stream")
    second.wait_until("page.state.view === 'residual'")
    expect(second.page.get_by_role("tab", name="Residual stream")).to_have_attribute("aria-selected", "true")
    assert first.state["view"] == "attention"
    first.page.reload()  # the URL has the room, the tab's storage that this student does not follow
    expect(find_class_line(first)).to_contain_text("you look around on your own")
    first.page.get_by_role("button", name="Follow again").click()
    first.wait_until("page.state.view === 'residual'")
    find_panel(teacher).get_by_label("the class follows me").uncheck()
    expect(find_class_line(second)).to_contain_text("look around on your own")
    find_panel(teacher).get_by_label("the class follows me").check()

    teacher.evaluate("actions.makeMove({ kind: 'lesson', lesson: given[0], step: given[1], reply: '' })", QUESTION_STEP)
    for student in (first, second):
        expect(find_lesson(student.page).locator("h2")).to_have_text(LESSONS[lesson].step(step).title)
        leave = student.page.get_by_role("button", name="Leave")
        expect(leave).to_have_attribute("title", "Leave the class")  # no second one
    counts, beside_question = (
        find_panel(teacher).locator(".bars .count"),
        find_lesson(teacher.page).locator(".class-replies"),
    )
    for replies in (find_panel(teacher).locator(".replies"), beside_question):
        expect(replies).to_contain_text("0 of 2 have replied.Show the replies here")  # how many, and not yet what
    expect(counts).to_have_count(0)
    find_panel(teacher).get_by_role("button", name="Show the replies here").click()
    expect(counts).to_have_text(["0", "0", "0", "0"])
    find_lesson(first.page).locator("button.option").nth(2).click()
    expect(counts).to_have_text(["0", "0", "1", "0"])
    find_lesson(second.page).locator("button.option").nth(0).click()
    expect(counts).to_have_text(["1", "0", "1", "0"])
    find_lesson(second.page).get_by_role("button", name="Ask me again").click()
    expect(counts).to_have_text(["0", "0", "1", "0"])
    teacher.page.keyboard.press("p")
    replied = teacher.page.locator("#stage .replied")
    expect(teacher.page.locator("body")).to_have_attribute("data-page", "question")
    teacher.page.keyboard.press("ArrowRight")  # one student has not replied yet
    expect(replied).to_have_text("1 of 2 has replied. Press → again for the answer.")
    expect(teacher.page.locator("body")).to_have_attribute("data-page", "question")
    expect(find_lesson(teacher.page).locator("button.option")).to_have_count(4)
    teacher.page.keyboard.press("Escape")
    find_lesson(second.page).locator("button.option").nth(2).click()
    expect(counts).to_have_text(["0", "0", "2", "0"])
    expect(find_panel(teacher).locator(".of")).to_have_text("2 of 2 have replied.")
    teacher.page.get_by_role("button", name="Class · 2 of 2 replied").click()  # presenting closed the panel
    beside_question.get_by_role("button", name="Hide the replies here").click()
    expect(counts).to_have_count(0)
    beside_question.get_by_role("button", name="Show the replies here").click()
    expect(beside_question.locator(".count")).to_have_text(["0", "0", "2", "0"])
    expect(beside_question.locator(".is-right")).to_have_count(0)
    expect(beside_question.get_by_role("button", name="Hide the replies here")).to_be_focused()
    expect(find_lesson(teacher.page).locator("button.option")).to_have_count(
        4
    )  # the teacher's page shows no answer, either
    expect(find_panel(teacher).locator(".is-right")).to_have_count(0)
    assert not [match["id"] for match in Axe().run(teacher.page, [["#room"]]).response["violations"]]
    assert not [match["id"] for match in Axe().run(first.page, [["#room-line"]]).response["violations"]]
    find_lesson(teacher.page).locator("button.option").nth(0).click()
    expect(find_panel(teacher).locator(".is-right .says")).to_contain_text("about 4,000")
    assert find_lesson(first.page).locator(".is-yours").count() == 1  # the student's own reply is unchanged
    teacher.page.keyboard.press("p")
    expect(teacher.page.locator("body")).to_contain_class("presenting")
    expect(teacher.page.locator("#stage .replied")).to_have_text("2 of 2 have replied.")
    expect(beside_question.locator(".is-right .says")).to_have_text("about 4,000 ✓ right")
    expect(beside_question.locator(".count")).to_have_text(["0", "0", "2", "0"])
    teacher.page.keyboard.press("Escape")
    teacher.page.get_by_role("button", name="Class · 2 of 2 replied").click()

    (key,) = {match for request_text in teacher.asked for match in re.findall(r'"key": ?"([\w-]{32})"', request_text)}
    for person in (teacher, first, second):
        assert key not in person.page.url
        assert not person.page.context.cookies()
    assert not [request_text for student in (first, second) for request_text in student.asked if key in request_text]
    assert teacher.page.evaluate("document.querySelector('#present') && !location.search.includes('room=')")
    close = find_panel(teacher).get_by_role("button", name="Close the room")
    close.click()
    expect(find_panel(teacher)).to_contain_text("their replies are deleted")
    find_panel(teacher).get_by_role("button", name="Keep it open").click()
    expect(close).to_be_focused()
    teacher.evaluate("actions.makeMove({ kind: 'lesson', lesson: given[0], step: 3, reply: '' })", QUESTION_STEP)
    expect(find_panel(teacher).locator(".replies")).to_contain_text("This step has no question.")
    find_lesson(teacher.page).get_by_role("button", name="Leave").click()
    expect(find_panel(teacher).locator(".replies")).to_be_hidden()
    close.click()
    find_panel(teacher).get_by_role("button", name="Close", exact=True).click()
    for student in (first, second):
        expect(find_class_line(student)).to_contain_text("The class is over")
        expect(student.page.locator("#tokens")).to_have_css("top", "37px")  # the line covers nothing
        find_class_line(student).get_by_role("button", name="Close").click()
        expect(student.page.locator("#tokens")).to_have_css("top", "0px")
        student.page.wait_for_function("!location.search.includes('room=')")
    expect(find_panel(teacher).get_by_role("button", name="Open a room")).to_be_focused()
    teacher.chips.nth(1).click()
    second.chips.nth(2).click()
    second.wait_until("page.state.query === 2")
    assert first.page.evaluate("sessionStorage.getItem('explorer:room')") is None


def test_teacher_asks_class_a_question_of_own(new_user):
    teacher = new_user().open()
    _code, link = open_room(teacher)
    first, second = new_user(), new_user(viewport=PHONE)
    for student in (first, second):
        student.page.goto(link)
        expect(find_class_line(student)).to_contain_text("you follow the teacher")
    panel, cards = find_panel(teacher), [student.page.locator("#class-question") for student in (first, second)]
    panel.get_by_text("Ask the class").click()
    panel.get_by_label("Question").fill("Who <b>saw</b> it?")
    panel.get_by_label("answer 1").fill("the cat")
    panel.get_by_role("button", name="Ask", exact=True).click()
    expect(panel.locator(".told")).to_have_text("Write two to four different answers, or none.")
    panel.get_by_label("answer 3").fill("the dog")
    panel.get_by_role("button", name="Ask", exact=True).click()
    expect(panel.locator(".told")).to_be_empty()
    for card in cards:
        expect(card.locator("summary")).to_have_text("Who <b>saw</b> it?")
    tokens = first.page.locator("#strip").bounding_box()
    assert cards[0].bounding_box()["y"] > tokens["y"] + tokens["height"]  # neither the text nor its tokens are covered
    cards[0].get_by_role("button", name="the cat").click()
    cards[1].get_by_role("button", name="the cat").click()
    counts = panel.locator(".asked .count")
    expect(panel.locator(".asked .of")).to_have_text("2 of 2 have replied.")
    expect(counts).to_have_count(0)  # students may see the screen
    panel.get_by_role("button", name="Show its replies here").click()
    expect(counts).to_have_text(["2", "0"])
    cards[1].get_by_role("button", name="the dog").click()
    expect(counts).to_have_text(["1", "1"])
    check_question_is_shown_large(teacher, panel)
    expect(cards[1].get_by_role("button", name="the dog")).to_be_focused()
    expect(cards[1].get_by_role("button", name="the dog")).to_have_attribute("aria-pressed", "true")
    second.page.reload()  # the tab's storage has the reply
    expect(cards[1].get_by_role("button", name="the dog")).to_have_attribute("aria-pressed", "true")
    assert not [match["id"] for match in Axe().run(second.page, [["#class-question"]]).response["violations"]]
    assert not [match["id"] for match in Axe().run(teacher.page, [["#room"]]).response["violations"]]
    panel.get_by_role("button", name="Show on the students’ pages").click()
    for card, own in zip(cards, ("the cat", "the dog"), strict=True):
        expect(card.locator(".count")).to_have_text(["1", "1"])
        expect(card.get_by_role("status")).to_have_text(f"Your reply: {own}")
    teacher.page.reload()  # the question stays open
    teacher.page.get_by_role("button", name="Class · 2").click()
    expect(counts).to_have_text(["1", "1"])
    panel.get_by_role("button", name="End the question").click()
    for card in cards:
        expect(card).to_be_hidden()
    panel.get_by_label("Question").fill("Why?")
    panel.get_by_label("Question").press("Enter")
    for card, words in zip(cards, ("It was near", "it was  NEAR"), strict=True):
        card.get_by_label("your reply").fill(words)
        card.get_by_role("button", name="Send").click()
    expect(panel.locator(".asked .row")).to_have_count(0)  # another question
    panel.get_by_role("button", name="Show its replies here").click()
    expect(panel.locator(".asked .row")).to_have_text(["it was near2"])
    expect(cards[0].get_by_role("status")).to_have_text("Your reply is sent. You can change it.")


def check_question_is_shown_large(teacher: Person, panel: Locator):
    """Check the own question and its replies on the whole screen, from the panel and when the teacher presents."""
    large = teacher.page.locator("#large-question")
    panel.locator(".asked").get_by_role("button", name="Show it large").click()
    assert large.bounding_box() == {"x": 0, "y": 0} | teacher.page.viewport_size
    expect(large.locator(".count")).to_have_text(["1", "1"])
    large.get_by_role("button", name="Hide its replies here").click()
    expect(large.locator("li")).to_have_text(["the cat", "the dog"])  # for the students, who may see the screen
    expect(large.locator(".count")).to_have_count(0)
    large.get_by_role("button", name="Show its replies here").click()
    letters = large.evaluate(
        "(view) => [...view.querySelectorAll('*')].map((e) => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(letters) >= 20
    teacher.page.keyboard.press("Escape")
    panel.get_by_label("the class follows me").blur()
    teacher.page.keyboard.press("p")
    expect(large).to_be_visible()
    teacher.page.keyboard.press("Escape")
    expect(large).to_be_hidden()
    expect(teacher.page.locator("#stage .stage")).to_be_visible()  # Escape has closed only the question
    teacher.page.keyboard.press("Escape")
    teacher.page.get_by_role("button", name=re.compile("^Class")).click()


def test_answers_are_held_back_until_teacher_shows_them(new_user):
    teacher, student = new_user().open(), new_user()
    _code, link = open_room(teacher)
    find_panel(teacher).get_by_label("hold answers back until I show them").check()
    find_panel(teacher).get_by_role("button", name="Show it large").click()  # for a projector
    large = teacher.page.locator("dialog.large-code")
    assert large.bounding_box() == {"x": 0, "y": 0} | teacher.page.viewport_size
    assert large.locator("svg").bounding_box()["height"] > teacher.page.viewport_size["height"] / 2
    teacher.page.keyboard.press("Escape")
    expect(large).to_be_hidden()
    teacher.evaluate("actions.makeMove({ kind: 'lesson', lesson: given[0], step: given[1], reply: '' })", QUESTION_STEP)
    student.page.goto(link)
    options, verdict = find_lesson(student.page).locator("button.option"), find_lesson(student.page).locator(".verdict")
    expect(student.page.locator("body")).to_contain_class("answer-held")
    for name in ("Just show me", "Print"):
        expect(find_lesson(student.page).get_by_role("button", name=name)).to_be_hidden()
    options.nth(2).click()
    expect(verdict).to_contain_text("Reply sent.")
    student.page.reload()  # the tab's storage has the reply
    expect(verdict).to_contain_text("Reply sent.")
    options.nth(1).click()  # another reply
    expect(options.nth(1)).to_have_attribute("aria-pressed", "true")
    expect(options.nth(2)).to_have_attribute("aria-pressed", "false")
    expect(teacher.page.get_by_role("button", name="Class · 1 of 1 replied")).to_be_visible()
    assert student.state["reply"] == ""  # so the server has sent no answer
    find_lesson(teacher.page).get_by_role("button", name="Show the answer").click()
    expect(find_lesson(teacher.page).locator(".class-replies .is-right")).to_have_count(1)
    expect(verdict).to_contain_text(re.compile("Right|Not quite"))
    expect(find_lesson(student.page).locator(".is-yours")).to_have_count(1)
    expect(student.page.locator("body")).not_to_contain_class("answer-held")


@pytest.mark.exhaustive
def test_student_class_line_stays_visible_on_phone(new_user):
    teacher = new_user().open(text="The cat saw the dog and the dog saw")
    _code, link = open_room(teacher)
    student = new_user(viewport=PHONE)
    student.page.goto(link)
    expect(find_class_line(student)).to_contain_text("you follow the teacher")
    teacher.evaluate("actions.makeMove({ kind: 'lesson', lesson: given[0], step: given[1], reply: '' })", QUESTION_STEP)
    expect(find_lesson(student.page).locator("h2")).to_be_visible()
    for size in (PHONE, DESK):
        student.page.set_viewport_size(size)
        student.wait_until_idle().page.evaluate(
            "document.querySelector('#view').style.minHeight = '3000px'"
        )  # a long step
        student.page.evaluate("scrollTo(0, 600)")
        student.page.wait_for_function("scrollY > 300")
        box = find_class_line(student).bounding_box()
        assert box["y"] == 0 and abs(student.page.locator("#tokens").bounding_box()["y"] - box["height"]) <= 1
        assert is_topmost(find_class_line(student).get_by_role("button", name="On my own"))
        assert is_topmost(student.strip)
        assert is_topmost(find_lesson(student.page).locator("header button:visible").last)


def is_topmost(element: Locator) -> bool:
    """Return whether no other element covers the middle of an element."""
    return element.evaluate("""(element) => {
      const { left, top, width, height } = element.getBoundingClientRect();
      return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
    }""")
