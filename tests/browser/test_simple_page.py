"""Simple page: its first state, first steps, and leaving it."""

import re

import pytest
from playwright.sync_api import expect

from explorer.lessons.example_prompts import GUESS_EXAMPLES
from explorer.views import STORY_STEPS, STORY_VIEWS

from .person import ANSWER, collect_posts, count_draws


def find_card(person):
    return person.page.locator("#guess .guess")


def find_bars(person):
    return person.prediction.locator("tbody tr")


def read_percentages(person) -> list[float]:
    """Return the probabilities of the bars in percent, as shown."""
    texts = person.prediction.locator("tbody .number").evaluate_all("cells => cells.map((c) => c.dataset.percent)")
    return [float(text.strip("<>%")) for text in texts]


def test_first_time_user_guesses_before_seeing_prediction(open_new_page):
    person = open_new_page()
    with collect_posts(person) as posts:
        person.open(view="")
    assert posts == ["/explorer/answer"]
    expect(person.page.locator("#overview-whole svg").first).to_be_visible()
    expect(find_bars(person).first).to_be_hidden()
    for hidden in (
        "#picker",
        "#views",
        "#more-settings",
        "#bar",
        "#run",
        "#steps",
        "#why-token",
        "#overview-whole .answer",
    ):
        expect(person.page.locator(hidden).first).not_to_be_visible()
    expect(find_card(person).locator(".ending")).to_have_text(re.compile(r"^….* ___$"))
    text = find_card(person).locator(".ending").text_content().removeprefix("…").removesuffix(" ___")
    assert person.prompt.input_value().endswith(text) and len(text) > 20
    choices = find_card(person).locator(".choices button")
    expect(choices).to_have_count(3)
    chosen = choices.first.text_content()
    is_covered = "(choice) => { choice.click(); return document.querySelector('#next-token').inert; }"
    assert choices.first.evaluate(is_covered)  # a second click there would pick a token
    expect(find_bars(person)).to_have_count(10)
    expect(find_bars(person).first).to_be_visible()
    person.page.wait_for_function("!document.querySelector('#next-token').inert")
    expect(person.page.locator("#steps")).to_be_visible()
    expect(find_card(person).locator("output")).to_contain_text(f"“{chosen}”")
    expect(find_card(person).locator("output")).to_contain_text(
        re.compile(r"^Right: |is number \d+ on its list \([\d.]+%\)")
    )
    expect(person.page.locator("#next-token tbody tr", has_text="your guess").locator(".text")).to_have_text(
        re.compile(f"·?{re.escape(chosen)}")
    )
    assert read_percentages(person) == sorted(read_percentages(person), reverse=True)
    expect_bars_to_scale(person)
    expect_own_chances_marked_once_changed(person)
    follow_all_steps(person)


def expect_own_chances_marked_once_changed(person):
    """Expect no marks of the model's own chances, as a story begins with these, until a slider is moved."""
    marks = person.page.locator("#answer .tick, #next-token .bars i").locator("visible=true")
    expect(marks).to_have_count(0)
    person.set("temperature", 0.3)
    expect(marks).to_have_count(11)  # of ten bars, and the heading's
    person.set("temperature", 1)
    expect(marks).to_have_count(0)


def expect_bars_to_scale(person):
    """Expect all bars to have one scale, and the heading to fit its line."""
    lengths = person.prediction.locator(".bars b").evaluate_all(
        "all => all.map((bar) => bar.getBoundingClientRect().width)"
    )
    columns = person.prediction.locator("tbody .bars").evaluate_all("all => all.map((bars) => bars.clientWidth)")
    assert len(set(columns)) == 1 and max(lengths) >= 0.4 * columns[0]
    scale = max(lengths) / max(read_percentages(person))
    assert lengths == pytest.approx([scale * share for share in read_percentages(person)], rel=0.06)
    heading = person.page.locator("#answer header")
    assert heading.evaluate("(row) => [row.scrollWidth <= row.clientWidth, row.clientHeight]") == [True, 26]


def follow_all_steps(person):
    """Press "Next" from the guess to the last step, and then choose another sentence."""
    places = set()  # of the repeatedly pressed button: equal in all steps
    for step in STORY_VIEWS:
        button = person.page.locator(".next-step:visible")
        places.add((person.page.locator("#step").bounding_box()["y"], button.bounding_box()["y"]))
        expect(button).to_have_text(f"Next: {step.title} →")
        button.click()
        person.expect_selected(view=step.name)
    assert len(places) == 1
    person.page.locator("#choosing-in-full a").click()
    expect(person.prediction.locator("thead th", has_text="÷")).to_be_visible()  # opens Stages
    person.page.go_back()
    person.expect_selected(view="choosing")
    button = person.page.locator(".next-step:visible")
    expect(button).to_have_text("Next: a lesson →")
    button.click()
    expect(person.page.locator("#lessons .one").first).to_be_visible()
    person.page.keyboard.press("Escape")
    expect_other_example_awaited(person)
    expect(person.prompt).to_have_value(GUESS_EXAMPLES[1])
    expect(find_card(person).locator(".see")).to_be_visible()
    person.expect_selected(view="overview")
    expect(find_bars(person).first).to_be_hidden()
    expect(find_card(person)).not_to_have_attribute("inert", "")  # the new text has arrived
    guess = find_card(person).get_by_role("textbox")
    guess.fill("z")  # not among the ten most probable, but has a row
    guess.press("Enter")
    expect(find_bars(person)).to_have_count(10)
    own = find_bars(person).last
    expect(own).to_contain_text("your guess")
    own.locator(".text").hover()
    expect(own.locator(".tag")).to_be_hidden()  # its place has “pick this” now
    expect(own.locator(".take")).to_have_text("pick this")
    expect(find_bars(person).last.locator(".text")).to_have_text(re.compile("^.?z$"))
    person.run(GUESS_EXAMPLES[2])
    expect(find_bars(person)).to_have_count(10)  # the guess was about the earlier text
    expect(person.prediction).not_to_contain_text("your guess")
    find_card(person).get_by_role("button", name="Another example").click()
    expect(person.prompt).to_have_value(GUESS_EXAMPLES[3])  # sentences played before come last
    find_card(person).locator(".see").click()
    person.run(GUESS_EXAMPLES[0])
    find_card(person).get_by_role("button", name="Another example").click()
    expect(person.prompt).to_have_value(GUESS_EXAMPLES[4])
    notices = person.page.locator(".notice")
    expect(notices).to_have_count(0)
    find_card(person).locator(".see").click()
    person.run("the fox")
    find_card(person).get_by_role("button", name="Another example").click()
    expect(person.prompt).not_to_have_value("the fox")
    expect(find_card(person)).not_to_have_attribute("inert", "")
    notices.get_by_role("button", name="Undo").click()
    expect(person.prompt).to_have_value("the fox")
    expect(notices).to_have_count(0)


def expect_other_example_awaited(person):
    """Choose another example while an answer about the old text is open: no guess before the new text has arrived."""
    held, card = [], find_card(person)
    person.wait_until_idle().page.route(ANSWER, lambda route: held.append(route), times=2)
    with person.page.expect_request(ANSWER):
        person.evaluate("actions.requestUpdate('show')")
    draws = count_draws(card)
    card.get_by_role("button", name="Another example").click()
    with person.page.expect_request(ANSWER):  # about the new text, after the answer about the old one
        held[0].continue_()
    expect(card).not_to_have_attribute("data-draws", str(draws))
    expect(card).to_have_attribute("inert", "")
    held[1].continue_()


def test_next_token_is_drawn_and_explained_while_it_is_last(open_new_page):
    person = open_new_page().open(view="")
    find_card(person).locator(".see").click()
    output = find_card(person).locator("output")
    expect(output).to_contain_text("likeliest next token is")
    numbers = [float(text) for text in person.prediction.locator("tbody .number").all_text_contents()]
    assert read_percentages(person) == pytest.approx([100 * share for share in numbers], rel=0.05)
    before, shares = (
        person.chips.count(),
        dict(zip(find_bars(person).locator(".text").all_text_contents(), read_percentages(person), strict=True)),
    )
    tag = person.prediction.locator("tr").filter(has=person.page.locator(".tag", has_text="Step picks"))
    expect(tag).to_have_count(0)  # beside “the likeliest is …” it seems to contradict
    person.tab("4 · Choosing")
    expect(tag).to_have_count(1)  # which says why an unlikely token has a row
    person.tab("Whole model")
    expect(tag).to_have_count(0)
    picked = person.page.locator("#brief .next").text_content().removeprefix("Step picks: ")
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips).to_have_count(before + 1)
    token = person.chips.last.text_content()
    assert token == picked
    expect(tag).to_have_count(1)
    expect(output).to_contain_text(f"own chance for “{token.strip()}” after “.” was")
    sentence = output.text_content()
    person.page.locator("#story [data-position]").click()  # a written word is explained, not the one after it
    expect(person.page.locator("#answer header h2")).to_have_text("Next token after “.”")
    expect(output).to_have_text(sentence)
    expect(person.page.locator("#story .explained")).to_have_text(token)
    expect(person.page.locator("#why-token .asked")).to_have_text(f"Why “{token.strip()}”?")
    person.chips.last.click()
    person.wait_until_idle().page.evaluate("explorer.select({ temperature: 1.7, seed: 9 })")
    assert read_percentages(person.wait_until_idle()) != sorted(shares.values(), reverse=True)
    expect(output).to_have_text(sentence)  # it was drawn with the earlier settings
    expect(person.page.locator("#answer header h2")).to_have_text(f"Next token after “{token.strip()}”")
    assert token in shares
    person.page.locator("#why-token .asked").click()
    expect(person.page.locator("#why-token .clauses")).to_be_in_viewport(ratio=1)
    person.run("the fox")
    expect(output).to_contain_text("likeliest next token is")


@pytest.mark.exhaustive
def test_guess_is_quoted_as_typed(open_new_page):
    person = open_new_page().open(view="")
    guess = find_card(person).get_by_role("textbox")
    guess.fill("Zorblat")
    guess.press("Enter")
    expect(find_card(person).locator("output")).to_contain_text("“Zorblat” is more than one token. It could begin with")


@pytest.mark.exhaustive
def test_guess_belongs_to_its_position(open_new_page):
    person = open_new_page().open(view="")
    guess, output = find_card(person).get_by_role("textbox"), find_card(person).locator("output")
    guess.fill("the")
    guess.press("Enter")
    expect(output).to_contain_text("likeliest now")
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(output).to_contain_text("own chance for")
    assert not person.wait_until_idle().state.get("guess")


@pytest.mark.exhaustive
def test_simple_page_shades_no_token_and_frames_no_key(open_new_page):
    person = open_new_page().open(view="looks", shade="rank")
    expect(person.chips.first).to_have_attribute("title", "position 0")
    assert not any(person.chips.evaluate_all("(all) => all.map((chip) => +chip.style.getPropertyValue('--share'))"))
    key = person.chips.and_(person.page.locator(".key"))
    expect(key).to_have_css("border-top-color", "rgba(0, 0, 0, 0)")
    person.page.get_by_role("button", name="Numbers", exact=True).click()
    expect(person.page.locator("#strip select")).to_have_value("rank")


@pytest.mark.exhaustive
def test_empty_prompt_is_reported_and_can_be_corrected(open_new_page):
    person = open_new_page().open(view="")
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
def test_later_visits_skip_guess(open_new_page):
    person = open_new_page().open(view="")
    find_card(person).locator(".see").click()
    expect(find_bars(person).first).to_be_visible()
    person.page.goto(person.address)
    expect(find_bars(person).first).to_be_visible()
    find_card(person).get_by_role("button", name="Guess again").click()
    expect(find_card(person).get_by_role("textbox")).to_be_focused()
    expect(find_bars(person).first).to_be_hidden()


@pytest.mark.exhaustive
def test_experts_reach_numbers_with_one_click_remembered(open_new_page):
    person = open_new_page().open(view="")
    numbers = person.page.get_by_role("button", name="Numbers", exact=True)
    find_card(person).get_by_role("button", name="I know transformers").click()
    expect(person.page.locator("#views")).to_be_visible()
    person.expect_selected(view="overview", depth="numbers")
    person.page.get_by_role("button", name="Story", exact=True).click()
    expect(find_card(person)).to_be_visible()
    numbers.click()
    expect(person.page.get_by_role("tab", name="Whole model")).to_be_visible()
    expect(person.page.locator("#overview-whole svg >> nth=0")).to_be_visible()
    person.expect_selected(view="overview")
    chances = {name: person.state[name] for name in ("temperature", "top_k")}
    person.page.goto(person.address)
    expect(person.page.locator("#overview-whole svg >> nth=0")).to_be_visible()
    person.expect_selected(**chances)  # as at the first visit: the model's own
    person.set("temperature", 1.7)
    person.page.locator("#temperature").get_by_role("button", name="Reset to default").click()
    person.expect_selected(**chances)
    expect(numbers).to_have_attribute("aria-pressed", "true")
    person.page.get_by_role("button", name="Story", exact=True).click()
    expect(find_card(person)).to_be_visible()
    person.expect_selected(view="overview", depth="story")
    person.page.go_back()
    expect(person.page.locator("#overview-whole svg >> nth=0")).to_be_visible()
    expect(numbers).to_have_attribute("aria-pressed", "true")


@pytest.mark.exhaustive
def test_depth_buttons_wait_for_first_answer(open_new_page):
    person, waiting, comes = open_new_page(), [], False

    def hold(route):
        route.continue_() if comes else waiting.append(route)

    person.page.route(ANSWER, hold)  # Python's first answer is pending
    person.page.goto(person.address)
    full = person.page.get_by_role("button", name="Numbers", exact=True)
    expect(full).to_be_disabled()
    comes = True
    for route in waiting:
        route.continue_()
    expect(full).to_be_enabled()
    full.click()
    expect(person.page.locator("#overview-whole svg >> nth=0")).to_be_visible()


@pytest.mark.exhaustive
def test_every_step_has_figure_and_leads_to_full_view(open_new_page):
    person = open_new_page().open(STORY_VIEWS[0].name)
    for step in STORY_VIEWS:
        person.tab(step.title)
        person.expect_selected(view=step.name)
        plot = person.page.locator(f"#{step.name}-{step.panels[0].name} .plot")
        expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
        further = person.page.locator(f"#{step.name}-in-full a")
        expect(further).to_be_visible()
        further.click()
        assert person.state["view"] not in {step.name for step in STORY_VIEWS}
        person.page.get_by_role("button", name="Story", exact=True).click()
        expect(person.page.locator("#view .plot:visible").first).to_be_visible()
        assert person.state["view"] in {step.name for step in STORY_VIEWS}  # the step about this view


LONG_TEXT = "Once upon a time there was a fox who said that the moon was cold, and the owl said nothing. " * 3
# Whether there are many names below the bars, how many overlap or are cut, and the number of notes
NAMES = """(plot) => {
  const frame = plot.getBoundingClientRect();
  const boxes = (of) => [...plot.querySelectorAll(of)].map((text) => text.getBoundingClientRect());
  const isCut = ({ left, right, top, bottom }) =>
    left < frame.left - 1 || right > frame.right + 1 || top < frame.top - 1 || bottom > frame.bottom + 1;
  const names = boxes(".xtick text"), notes = boxes(".annotation-text"), texts = boxes(".bars .bartext");
  const close = names.filter(({ left }, i) => i && left < names[i - 1].right - 1);
  return [names.length > 9, close.length, [...names, ...notes, ...texts].filter(isCut).length, notes.length];
}"""


@pytest.mark.parametrize("width", [1440, 390])
def test_names_of_many_bars_do_not_overlap(open_new_page, width):
    person = open_new_page(viewport={"width": width, "height": 900}).open("pieces", depth="story", text=LONG_TEXT)
    plot = person.page.locator("#pieces-expected .plot")
    expect(plot).to_have_attribute("data-draws", re.compile(r"\d"))
    assert plot.evaluate(NAMES) == [True, 0, 0, 1]
    expect(plot.locator(".annotation-text")).to_have_text(re.compile(r"^the model’s chance of each token: .+%$"))


def test_phone_keeps_step_button_and_text_in_reach(open_new_page):
    person = open_new_page(viewport={"width": 390, "height": 844}).open(view="")
    find_card(person).locator(".see").click()
    assert person.page.locator("#title").evaluate("title => title.getClientRects()[0].height") >= 20  # not at the edge
    parts = [person.page.locator(part).first for part in (".next-step:visible", "#overview-whole svg", "#next-token")]
    heights = [part.bounding_box()["y"] for part in parts]
    assert heights == sorted(heights)  # the drawing follows the card
    cut = "texts => texts.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length"
    assert person.prediction.locator(".tagged .text").evaluate_all(cut) == 0
    next_step = person.page.locator(".next-step:visible")
    place = next_step.bounding_box()["y"]
    next_step.click()
    person.expect_selected(view=STORY_VIEWS[0].name)
    person.wait_until_idle()
    assert next_step.bounding_box()["y"] == pytest.approx(place, abs=2)  # stays under the thumb
    person.page.locator("#pieces-in-full").scroll_into_view_if_needed()
    step = person.page.get_by_role("button", name="Step", exact=True)
    person.prompt.evaluate("(box) => box.blur()")
    person.page.wait_for_function("""() => {
        const { scrollLeft, scrollWidth, clientWidth } = document.querySelector("#prompt textarea");
        return scrollWidth > clientWidth && scrollLeft === 0;
    }""")  # the prompt's beginning is in sight, and its end in the tokens
    page_bar = person.page.locator("#bar").bounding_box()["y"]
    heights = set()
    for step_view in STORY_STEPS[1:]:
        person.tab(step_view.title)
        person.page.evaluate("scrollTo(0, 0)")
        person.wait_until_idle()
        heights.add(next_step.bounding_box()["y"])
    assert len(heights) == 1
    temperature = person.page.locator("#temperature input[type=range]").bounding_box()
    assert temperature["y"] + temperature["height"] <= page_bar  # on one screen with its figure
    for control in (step, person.page.locator("#brief")):
        expect(control).to_be_in_viewport()
    assert step.bounding_box()["height"] >= 44
    person.set("temperature", 1.9)
    step.click()
    person.wait_until_idle()
    next_step.click()  # the lessons' menu is in the folded one
    expect(person.page.locator("#lessons .one").first).to_be_visible()


@pytest.mark.exhaustive
def test_steps_are_visible_after_guess(open_new_page):
    person = open_new_page(viewport={"width": 390, "height": 844}).open(view="")
    guess = find_card(person).get_by_role("textbox")
    guess.fill("the")
    guess.press("Enter")
    expect(find_card(person).locator("output")).to_contain_text("likeliest now")
    expect(person.page.get_by_role("tab", name=STORY_STEPS[0].title).first).to_be_in_viewport()


@pytest.mark.parametrize("view, depth, width", [("choosing", "story", 1280), ("tokens", "numbers", 390)])
def test_step_and_generate_continue_a_typed_text(open_new_page, view, depth, width):
    person = open_new_page(viewport={"width": width, "height": 844}).open(view, depth=depth)
    generated, run = person.chips.and_(person.page.locator(".generated")), person.page.locator("#run")
    for i, button in enumerate(("Step", "Generate"), start=1):
        person.prompt.fill(text := f"The {i} typed text")
        expect(run).to_be_visible()
        person.page.get_by_role("button", name=button, exact=True).click()
        expect(generated).not_to_have_count(0)
        expect(person.wait_until_idle().page.locator("#story .story")).to_contain_text(text)
    person.prompt.fill("")
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.page.locator("body.unrun #run")).to_be_visible()  # nothing is run, and nothing is continued
    expect(person.wait_until_idle().page.locator("#story .story")).to_contain_text(text)
