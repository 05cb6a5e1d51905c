"""Controls stay within reach, and nothing covers them."""

import pytest
from playwright.sync_api import expect

TELEPHONE = {"width": 390, "height": 844}
READ = "#view .block, #glossary, #open-file, #generation .block"
PRESSED = "#prompt textarea, #run, #step, #generate, #stop, header button, #header button"
COVERED = """(pressed) => {
  const notice = document.querySelector("#notices .notice").getBoundingClientRect();
  return [...document.querySelectorAll(pressed)].filter((button) => {
    const box = button.getBoundingClientRect();
    return box.left < notice.right && box.right > notice.left && box.top < notice.bottom && box.bottom > notice.top;
  }).map((button) => button.id || button.textContent);
}"""


BAR_AND_ITS_ROOM = """[
  document.querySelector("#bar").offsetHeight,
  getComputedStyle(document.documentElement).getPropertyValue("--bar").trim(),
]"""


@pytest.mark.exhaustive
def test_buttons_stay_in_sight_down_to_the_end_of_a_long_tab(visitor):
    person = visitor(viewport=TELEPHONE)
    for scroll_top in ("0", "document.body.scrollHeight / 2", "document.body.scrollHeight"):
        person.page.evaluate(f"scrollTo(0, {scroll_top})")
        for name in ("Step", "Generate", "Stop"):
            expect(person.page.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)


@pytest.mark.exhaustive
def test_a_telephone_shows_the_end_of_the_text_and_the_token_to_come(visitor):
    person = visitor(viewport=TELEPHONE)
    brief = person.page.locator("#brief .brief")
    expect(brief).to_be_in_viewport(ratio=1)
    assert person.page.evaluate(BAR_AND_ITS_ROOM) == [101, "101px"]
    drawn_token = (
        person.prediction.locator("tr", has=person.page.locator(".tag", has_text="next draw")).locator(".text").first
    )
    expect(brief.locator(".next")).to_have_text(f"next draw: {drawn_token.text_content()}")
    person.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    brief.click()
    expect(person.prompt).to_be_focused()
    expect(person.prompt).to_be_in_viewport()


@pytest.mark.exhaustive
def test_what_is_told_covers_nothing_that_is_pressed(visitor):
    person = visitor(viewport=TELEPHONE)
    person.prompt.fill("")
    person.page.get_by_role("button", name="Run").click()
    expect(person.warning.last).to_contain_text("The prompt is empty")
    assert person.page.evaluate(COVERED, PRESSED) == []
    person.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert person.page.evaluate(COVERED, READ) == []  # it has room of its own there


@pytest.mark.exhaustive
def test_a_figure_wider_than_its_place_says_so(visitor):
    person = visitor("prediction", viewport=TELEPHONE)
    assert_scroll_hint(person, person.page.locator("#prediction-lens .html-container"))


def assert_scroll_hint(person, box):
    person.page.set_viewport_size(TELEPHONE)
    title = box.locator("h2")
    has_hint = "(title) => getComputedStyle(title, '::after').content.includes('scrolls sideways')"
    expect(box).to_have_attribute("data-more", "right")
    box.evaluate("place => { place.scrollLeft = place.scrollWidth; }")
    expect(box).to_have_attribute("data-more", "left")
    assert title.evaluate(has_hint)
    person.page.set_viewport_size({"width": 1440, "height": 900})
    expect(box).to_have_attribute("data-more", "")
    assert not title.evaluate(has_hint)


def test_a_telephone_shows_the_end_of_a_prompt(newcomer):
    prompt = newcomer(viewport=TELEPHONE).open("attention").prompt
    visible = prompt.screenshot()
    prompt.evaluate("(box) => { box.style.color = 'transparent'; }")
    assert prompt.screenshot() != visible


SMALL = """() => [...document.querySelectorAll("button, select, summary, input, .chip")].filter((target) => {
  const { width, height } = target.getBoundingClientRect();
  const isInside = target.closest("footer, table, .map, .plot, [type=range], [type=checkbox]");
  return !isInside && target.checkVisibility({ visibilityProperty: true }) && width && (height < 43.5 || width < 43.5);
}).map((target) => target.outerHTML.slice(0, 160))"""


@pytest.mark.parametrize("view", ["", "experiments"])
@pytest.mark.exhaustive
def test_what_fingers_press_is_as_large_as_they_are(newcomer, touchscreen, view):
    person = newcomer(viewport=TELEPHONE, profile=touchscreen).open(view)
    person.at_rest()
    assert person.page.evaluate(SMALL) == []
    for line in person.page.locator(".fold:visible").element_handles():
        if line.is_visible():  # it may be in one that was folded since
            line.click()
    assert person.page.evaluate(SMALL) == []
    assert person.page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0


def test_another_tab_begins_at_the_pages_top_and_a_figure_below_what_sticks(visitor):
    person = visitor("attention")
    person.page.evaluate("scrollTo(0, 150)")
    person.tab("Prediction")
    person.wait_until("page.state.view === 'prediction' && scrollY === 0")
    strip = person.page.locator("#tokens").bounding_box()
    assert person.page.locator("#prediction-lens").evaluate(
        "(figure, least) => parseFloat(getComputedStyle(figure).scrollMarginTop) >= least", strip["height"]
    )
