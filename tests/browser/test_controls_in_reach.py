"""Controls stay within reach, and nothing covers them."""

import pytest
from playwright.sync_api import expect

TELEPHONE = {"width": 390, "height": 844}
READ_SELECTOR = "#view .block, #glossary, #open-file, #generation .block"
PRESSED_SELECTOR = "#prompt textarea, #run, #step, #generate, #stop, header button, #header button"
COVERED_CONTROLS = """(pressed) => {
  const notice = document.querySelector("#notices .notice").getBoundingClientRect();
  return [...document.querySelectorAll(pressed)].filter((button) => {
    const box = button.getBoundingClientRect();
    return box.left < notice.right && box.right > notice.left && box.top < notice.bottom && box.bottom > notice.top;
  }).map((button) => button.id || button.textContent);
}"""


BAR_HEIGHTS = """[
  document.querySelector("#bar").offsetHeight,
  getComputedStyle(document.documentElement).getPropertyValue("--bar").trim(),
]"""


@pytest.mark.exhaustive
def test_buttons_stay_visible_while_scrolling_long_tab(open_page):
    person = open_page(viewport=TELEPHONE)
    for scroll_top in ("0", "document.body.scrollHeight / 2", "document.body.scrollHeight"):
        person.page.evaluate(f"scrollTo(0, {scroll_top})")
        for name in ("Step", "Generate"):  # whose place Stop takes meanwhile
            expect(person.page.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)


@pytest.mark.exhaustive
def test_phone_shows_text_end_and_next_token(open_page):
    person = open_page(viewport=TELEPHONE)
    brief = person.page.locator("#brief .brief")
    expect(brief).to_be_in_viewport(ratio=1)
    assert person.page.evaluate(BAR_HEIGHTS) == [101, "101px"]
    drawn_token = (
        person.prediction.locator("tr", has=person.page.locator(".tag", has_text="Step picks")).locator(".text").first
    )
    expect(brief.locator(".next")).to_have_text(f"Step picks: {drawn_token.text_content()}")
    person.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    brief.click()
    expect(person.prompt).to_be_focused()
    expect(person.prompt).to_be_in_viewport()


@pytest.mark.exhaustive
def test_notice_covers_no_control(open_page):
    person = open_page(viewport=TELEPHONE)
    person.prompt.fill("")
    person.page.get_by_role("button", name="Run").click()
    expect(person.warning.last).to_contain_text("The prompt is empty")
    assert person.page.evaluate(COVERED_CONTROLS, PRESSED_SELECTOR) == []
    person.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert person.page.evaluate(COVERED_CONTROLS, READ_SELECTOR) == []  # the page leaves space for it


@pytest.mark.exhaustive
def test_figure_wider_than_screen_has_scroll_hint(open_page):
    person = open_page("prediction", viewport=TELEPHONE)
    assert_scroll_hint(person, person.page.locator("#prediction-lens .html-container"))


WIDE_WORDS = """(words) => words.filter((word) => word.getBBox().width > Number(word.dataset.room)).length"""


def test_words_by_depth_fit_projector(open_page):
    """A lens that scrolls to the chosen column hides the names of the layers."""
    person = open_page("prediction", viewport={"width": 1024, "height": 768}, text=" ".join(["the friends"] * 9))
    words = person.page.locator("#prediction-lens .heatmap-label text")
    expect(words.first).to_be_attached()
    expect(person.page.locator("#prediction-lens .html-container")).to_have_attribute("data-more", "")
    assert words.evaluate_all(WIDE_WORDS) == 0


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


IS_ON_TOP = """(box) => {
  const { left, top, bottom } = box.getBoundingClientRect();
  return [top + 8, bottom - 8].every((y) => document.elementFromPoint(left + 20, y) === box);
}"""


def test_phone_shows_prompt_and_moves_nothing_when_it_grows(open_new_page):
    """A page that moves as the prompt loses the focus takes the target from under the finger."""
    person = open_new_page(viewport=TELEPHONE).open("attention")
    prompt, strip = person.prompt, person.page.locator("#strip")
    top, height = strip.bounding_box()["y"], prompt.bounding_box()["height"]
    prompt.fill("A long text of many words that needs three lines on the narrow screen of a phone, at the least")
    assert prompt.bounding_box()["height"] > height + 20 and strip.bounding_box()["y"] == top
    assert prompt.evaluate(IS_ON_TOP)
    prompt.fill("Once upon a time there was a fox.")
    prompt.blur()
    visible = prompt.screenshot()
    prompt.evaluate("(box) => { box.style.color = 'transparent'; }")
    assert prompt.screenshot() != visible


SMALL_TARGETS = """() => [...document.querySelectorAll("button, select, summary, input, .chip")].filter((target) => {
  const { width, height } = target.getBoundingClientRect();
  const isInside = target.closest("footer, table, .map, .plot, [type=range], [type=checkbox]");
  return !isInside && target.checkVisibility({ visibilityProperty: true }) && width && (height < 43.5 || width < 43.5);
}).map((target) => target.outerHTML.slice(0, 160))"""


@pytest.mark.parametrize("view", ["", "experiments"])
@pytest.mark.exhaustive
def test_touch_targets_are_large_enough(open_new_page, touchscreen, view):
    person = open_new_page(viewport=TELEPHONE, profile=touchscreen).open(view)
    person.wait_until_idle()
    assert person.page.evaluate(SMALL_TARGETS) == []
    for line in person.page.locator(".fold:visible").element_handles():
        if line.is_visible():  # an earlier click may have folded its parent
            line.click()
    assert person.page.evaluate(SMALL_TARGETS) == []
    assert person.page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0


def test_new_tab_starts_at_page_top_below_sticky_header(open_page):
    person = open_page("attention")
    person.page.evaluate("scrollTo(0, 150)")
    person.tab("Prediction")
    person.wait_until("page.state.view === 'prediction' && scrollY === 0")
    strip = person.page.locator("#tokens").bounding_box()
    assert person.page.locator("#prediction-lens").evaluate(
        "(figure, least) => parseFloat(getComputedStyle(figure).scrollMarginTop) >= least", strip["height"]
    )
