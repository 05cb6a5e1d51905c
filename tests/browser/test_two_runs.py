"""Comparing a second run with the first."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.views.style import LIGHT
from explorer.web.actions.page_actions import FIRST_PROMPT

from .painted import CELL_TEXTS, cell_colours, pixels, scale_colours
from .two_runs import OTHER, chips_of_b, compare, expect_painted, open_more, show_run, switch

IS_WITHIN_ITS_PLACE = """(frame) => {
  const place = frame.closest(".html-container");
  const [around, at] = [place, frame].map((box) => box.getBoundingClientRect());
  return at.left >= around.left && at.right <= around.right;
}"""


@pytest.fixture
def ways(person):
    return person.page.locator("#runs .ways")


def test_another_prompt_stands_beside_this_one(visitor):
    person = visitor(unfolded="all", shown="both")  # as a link may say without a second run
    expect(person.page.locator(".of-b:visible")).to_have_count(0)
    person.page.evaluate("void window.explorer.select({ shown: 'a' })")
    person.expect_selected(shown="a")
    expect(person.page.locator("#strip-b")).to_be_hidden()
    expect(person.page.locator("#series")).to_be_hidden()  # but for Training, of a model without steps
    compare(person)
    expect(person.page.locator("#strip-b .strip")).to_have_text(OTHER)
    expect(person.strip).to_have_text(FIRST_PROMPT)
    assert person.page.locator("#strip-b").bounding_box()["height"] <= 24  # the first figure is near
    expect(person.prediction.locator("thead")).to_contain_text("A − B in")
    expect(person.page.locator("#runs .aligned:not(.about-b)")).to_contain_text("both texts share")
    expect(person.page.locator("#attention-stages .instead")).to_contain_text("scale of its own")
    show_run(person, "A")
    expect(person.prediction.locator("thead")).to_contain_text("B:")
    expect(person.draw.locator(".falls")).to_contain_text("KL(A‖B) = ")
    expect_both_beside_each_other(person)
    open_more(person)
    person.page.locator("#runs").get_by_role("button", name="close B").click()
    expect(person.page.locator("#strip-b, .of-b:visible")).to_have_count(1)
    expect(person.page.locator("#strip-b")).to_be_hidden()
    expect(person.page.locator("#runs .ways")).to_be_visible()
    expect(person.page.locator("#attention-stages .plot")).to_be_visible()


def expect_both_beside_each_other(person):
    """Expect A | B to draw both runs' figures, in which a click chooses and tells in its own run."""
    show_run(person, "A | B")
    expect(person.page).to_have_url(re.compile("shown=both"))
    own, other = (person.page.locator(f"#attention-pattern{suffix}") for suffix in ("", "-b"))
    expect(own.locator("h2")).to_contain_text("A: ")
    expect(other.locator("h2")).to_contain_text("B: ")
    boxes = [block.bounding_box() for block in (own, other)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    assert boxes[0]["width"] == pytest.approx(boxes[1]["width"], abs=1)
    expect(person.page.locator("#attention-stages-b .plot .main-svg").first).to_be_visible()  # unfolded as A's is
    row, last = chips_of_b(person).count() - 1, person.chips.count() - 1
    person.click_cell(other.locator(".plot"), row - 2, row)
    person.expect_selected(query=last, key=last - 2)
    expect(person.page.locator(".inspection:visible")).to_have_text(re.compile("^×B: "))
    own.locator(".plot").scroll_into_view_if_needed()
    person.click_cell(own.locator(".plot"), 1, 2)
    person.expect_selected(query=2, key=1)
    expect(person.page.locator(".inspection:visible").first).to_have_text(re.compile("^×A: "))
    person.page.locator("#attention-heads-b .head").nth(3).focus()
    person.page.keyboard.press("Enter")
    expect(person.page.locator("#attention-heads .head").nth(3)).to_have_attribute("aria-pressed", "true")
    person.page.evaluate("window.explorer.select({ view: 'overview' })")
    for suffix, letter in (("", "A"), ("-b", "B")):  # what has no heading has its letter before its path
        path = person.page.locator(f"#overview-whole{suffix} .path")
        expect(path).to_be_visible()
        assert path.evaluate("path => getComputedStyle(path, '::before').content") == f'"{letter}: "'
    person.page.evaluate(f"window.explorer.select({{ view: 'prediction', query: {last} }})")
    for suffix in ("", "-b"):  # each lens shows the names of its rows beside the chosen column
        frame = person.page.locator(f"#prediction-lens{suffix} .shapelayer path").last
        expect(frame).to_be_visible()
        assert frame.evaluate(IS_WITHIN_ITS_PLACE)
        assert person.page.locator(f"#prediction-lens{suffix} .ytick text").first.evaluate(IS_WITHIN_ITS_PLACE)
    person.page.evaluate("window.explorer.select({ view: 'attention' })")
    person.at_rest()


def test_a_view_of_two_runs_compares_ones_own_prompt_at_once(newcomer):
    person = newcomer().open("compare", depth="story", text="I had a nice day at the beach")
    box = person.page.get_by_role("textbox", name="the other prompt")
    expect(person.page.locator("#compare-streams .plot")).to_be_visible()
    expect(box).to_be_hidden()
    assert person.page.locator("#compare-streams").bounding_box()["y"] <= 230
    words = [person.page.locator(f"{strip} .chip").all_text_contents() for strip in ("#strip", "#strip-b")]
    assert words[0][0] == words[1][0] and sum(a != b for a, b in zip(*words, strict=True)) == 1
    expect(person.page.locator("#strip-b .meaning")).to_have_text("surprises B more")
    for strip, is_blue in (("#strip", True), ("#strip-b", False)):  # as in the figures of A − B
        colour = person.page.locator(f"{strip} .meaning i").evaluate("(i) => getComputedStyle(i).backgroundColor")
        red, _green, blue = map(float, re.findall(r"[\d.]+", colour)[:3])
        assert (blue > red) is is_blue, colour
    person.page.locator("#runs .about").click()
    box.fill("I had a day")
    box.press("Enter")
    expect(person.page.locator("#strip-b .strip")).to_have_text("I had a day")
    expect(box).to_be_hidden()


def test_facts_of_both_runs_stand_side_by_side_and_what_differs_is_coloured(newcomer):
    person = newcomer().open("compare")
    facts = person.page.locator("#compare-facts .plot")
    expect(facts).to_contain_text("loss of the text")
    texts, painted = facts.evaluate(CELL_TEXTS), cell_colours(facts, (7, 2)).sum(axis=-1)
    assert texts["0, 0"] == texts["1, 0"] == "tiny"
    for row, (a, b) in enumerate(painted):
        assert a == b and (a < painted.max()) == (texts[f"0, {row}"] != texts[f"1, {row}"])


def test_no_two_elements_have_one_id_where_both_runs_are_drawn(newcomer):
    person = newcomer().open("overview", shown="both", **{"b.text": OTHER})
    expect(person.page.locator("#overview-whole-b .drawing")).to_be_visible()
    counts = "[...document.querySelectorAll('[id]:not([id=\"\"])')].map(({ id }) => id)"
    ids = person.evaluate(counts)
    assert len(ids) == len(set(ids))


@pytest.mark.exhaustive
def test_b_has_another_prompt_in_place_of_its_own(person):
    compare(person)
    bar = person.page.locator("#runs")
    expect(bar.get_by_role("button", name="another prompt")).to_be_hidden()
    open_more(person)
    bar.get_by_role("button", name="another prompt").click()
    expect(person.page.get_by_label("the other prompt")).to_have_value(OTHER)
    person.page.keyboard.press("Escape")
    expect(bar.locator(".switch")).to_be_visible()
    open_more(person)
    bar.get_by_role("button", name="another prompt").click()
    person.page.get_by_label("the other prompt").fill("Once upon a day")
    bar.get_by_role("button", name="Compare", exact=True).click()
    expect(person.page.locator("#strip-b .strip")).to_have_text("Once upon a day")
    expect(bar.locator(".switch")).to_be_visible()


@pytest.mark.exhaustive
def test_figures_are_never_those_of_what_was_asked_before(person):
    """Covers a choice and a change between two presses of the switch, however quick."""
    compare(person)
    changes = {
        "head": lambda: person.evaluate("actions.select({ layer: 1, head: 0 })"),
        "change of B": lambda: person.evaluate("actions.setInterventions(['blocks.0.attn.z.0*zero'], 'b.edits')"),
    }
    other_choices = {"B": ("A", "A − B"), "A − B": ("A", "B")}
    for change, last in zip(changes.values(), ("B", "A − B"), strict=True):
        for name in other_choices[last]:
            switch(person, name).click()
        change()
        with person.redrawn(person.pattern):
            switch(person, last).click()
        expect(person.at_rest().page.locator(".stale:visible")).to_have_count(0)
        expect_painted(person)


@pytest.mark.exhaustive
def test_figures_that_follow_no_selection_show_the_run_that_is_chosen(person):
    """Thumbnails of heads and their badge are those of the run that the large figure shows."""
    compare(person)
    mark = person.page.locator("#attention-heads .evidence-mark")
    expect(mark).to_have_text(re.compile("A: .*; B: "))
    tokens = {"A": person.chips.count(), "B": chips_of_b(person).count()}
    for name in ("B", "A", "B"):
        with person.redrawn(person.grid):
            switch(person, name).click()
        person.at_rest()
        image = pixels(person.grid.locator(".head img").first)
        assert len(image) == tokens[name]
        assert (
            image[0, 0] == scale_colours(LIGHT.sequential, np.array(1.0))
        ).all()  # the first token sees itself alone
        expect(mark).to_have_text(re.compile("^recomputed"))


@pytest.mark.exhaustive
def test_a_click_in_b_selects_what_stands_beside_it_in_a(person):
    compare(person)
    show_run(person, "B")
    row = chips_of_b(person).count() - 1
    person.click_cell(person.pattern, row - 2, row)
    last = person.chips.count() - 1
    person.expect_selected(query=last, key=last - 2)
    expect(chips_of_b(person).nth(row)).to_have_attribute("aria-selected", "true")
    chips_of_b(person).nth(1).click()
    person.expect_selected(query=1)
    expect(person.chips.nth(1)).to_have_attribute("aria-selected", "true")


def test_what_is_seldom_done_with_two_runs_is_behind_a_button_that_closes_as_others(visitor):
    person = visitor(**{"b.text": OTHER})
    more = person.page.get_by_role("button", name="more of the two runs")
    copy = person.page.get_by_role("button", name="copy A to B")
    expect(copy).to_be_hidden()
    for close in (lambda: person.page.keyboard.press("Escape"), person.page.locator("#next-token-words").click):
        more.click()
        expect(copy).to_be_in_viewport(ratio=1)
        copy.click(trial=True)  # fails if something lies over it
        close()
        expect(copy).to_be_hidden()
        expect(more).to_have_attribute("aria-expanded", "false")
    more.click()
    copy.click()
    expect(person.page.locator("#strip-b .strip")).to_have_text(FIRST_PROMPT)


@pytest.mark.exhaustive
def test_tokens_are_put_together_by_hand(person):
    compare(person)
    person.chips.nth(7).click()
    open_more(person)
    person.page.locator("#runs").get_by_role("button", name="pair two tokens by hand").click()
    chips_of_b(person).nth(9).click()
    expect(person.page.locator("#runs .aligned:not(.about-b)")).to_contain_text("as you paired them")
    expect(chips_of_b(person).nth(9)).to_have_attribute("aria-selected", "true")
    open_more(person)
    person.page.locator("#runs").get_by_role("button", name="align again").click()
    expect(person.page.locator("#runs .aligned:not(.about-b)")).to_contain_text("both texts share")


@pytest.mark.exhaustive
def test_a_changed_run_is_compared_with_itself_unchanged(visitor):
    person = visitor(edits="blocks.0.attn.z.1*zero")
    person.open_menu("#runs .menu").get_by_role("button", name="without the changes").click()
    expect(person.page.locator("#strip-b")).to_be_visible()
    expect(person.page.locator("#runs .about")).to_contain_text("without the changes")
    person.tab("Compare")
    formula = person.page.locator("#compare-formula")
    expect(formula).to_contain_text("A and B first differ at blocks.0.attn.z")
    for name in ("streams", "heads", "parts", "next_token", "text"):
        expect(person.page.locator(f"#compare-{name} .main-svg").first).to_be_visible()


@pytest.mark.exhaustive
def test_another_model_reads_the_same_text_as_it_grows(person):
    person.open_menu("#runs .menu").get_by_label("another model").select_option("gpt-twin")
    expect(person.page.locator("#strip-b .strip")).to_have_text(FIRST_PROMPT)
    person.generate(3)
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(3)
    expect(person.page.locator("#strip-b .chip.generated")).to_have_count(3)
    person.page.locator("#runs").get_by_role("button", name="more of the two runs").click()
    person.page.locator("#runs").get_by_role("button", name="swap A and B").click()
    person.expect_selected(checkpoint="gpt-twin")
    expect(person.page.locator("#facts")).to_contain_text("LayerNorm")


@pytest.mark.parametrize("width", [390, 1024, 1440])
@pytest.mark.exhaustive
def test_two_runs_fit_the_screen(visitor, width):
    """Their next tokens with the default settings fit, too."""
    person = visitor(viewport={"width": width, "height": 844}, **{"b.text": OTHER})
    expect(person.page.locator("#strip-b .strip")).to_have_text(OTHER)
    person.at_rest()
    assert person.page.evaluate("document.documentElement.scrollWidth") <= width
    table = person.prediction.locator(".table")
    expect(table.locator("thead th")).to_have_count(7)
    assert table.evaluate("(table) => table.scrollWidth - table.clientWidth") <= 0


@pytest.mark.exhaustive
def test_what_b_is_changed_by_is_taken_back_where_it_is_told(visitor):
    intervention_b, intervention_a = "blocks.0.attn.z.1*zero", "blocks.1.attn.z.0*zero"
    person = visitor(edits=intervention_a, **{"b.text": OTHER, "b.edits": intervention_b})
    interventions_text = person.page.locator("#changes")
    expect(interventions_text).to_contain_text("B is changed")
    interventions_text.get_by_role("button", name="take back: head 1 of layer 0").click()
    expect(interventions_text).not_to_contain_text("B is changed")
    person.at_rest()
    assert (person.state["edits"], person.state["b.edits"]) == (intervention_a, "")
    interventions_text.get_by_role("button", name="take back: head 0 of layer 1").click()
    expect(interventions_text).to_be_hidden()
