"""Comparison of a second run with the first."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.views.style import LIGHT
from explorer.web.actions.page_actions import FIRST_PROMPT

from .pixels import CELL_TEXTS, TICKS, cell_colours, read_pixels, scale_colours
from .two_runs import OTHER_PROMPT, compare, expect_painted, find_switch, find_tokens_b, open_more, show_run

IS_WITHIN_FIGURE = """(frame) => {
  const place = frame.closest(".html-container");
  const [around, at] = [place, frame].map((box) => box.getBoundingClientRect());
  return at.left >= around.left && at.right <= around.right;
}"""


ALIGNED_CHIPS = """[...document.querySelectorAll("#strip .chip")].every((chip, i) => {
  const partner = document.querySelectorAll("#strip-b .chip")[window.modules.page_state.partnerInB(i)];
  return !partner || Math.abs(partner.offsetLeft - chip.offsetLeft) <= 1;
})"""


@pytest.fixture
def ways(person):
    return person.page.locator("#runs .ways")


def test_second_prompt_is_shown_beside_first(open_page):
    person = open_page(unfolded="attention-stages", shown="both")  # a link may request it without a second run
    expect(person.page.locator(".of-b:visible")).to_have_count(0)
    person.page.evaluate("void window.explorer.select({ shown: 'a' })")
    person.expect_selected(shown="a")
    expect(person.page.locator("#strip-b")).to_be_hidden()
    expect(person.page.locator("#series")).to_be_hidden()  # visible in Training only, for a model without steps
    compare(person)
    expect(person.page.locator("#strip-b .strip")).to_have_text(OTHER_PROMPT)
    expect(person.strip).to_have_text(FIRST_PROMPT)
    assert person.page.locator("#strip-b").bounding_box()["height"] <= 24  # the first figure is close
    person.wait_until(ALIGNED_CHIPS)
    expect(person.prediction.locator("thead")).to_contain_text("A − B,")
    expect(person.page.locator("#runs .aligned:not(.about-b)")).to_contain_text("both texts share")
    expect(person.page.locator("#attention-stages .instead")).to_contain_text("scale of its own")
    show_run(person, "A")
    expect(person.prediction.locator("thead .other")).to_have_text("p B")
    for column in ("logit", "other_logit", "model", "other"):
        expect(person.prediction.locator(f"thead .{column}")).to_be_visible()
    expect(person.draw.locator(".falls")).to_contain_text("KL(A‖B) = ")
    expect_both_runs_drawn(person)
    person.page.locator("[data-mode=story]").click()
    expect(person.page.locator("#guess output")).to_contain_text("Story tells about run A only; Numbers shows B, too.")
    person.page.locator("[data-mode=numbers]").click()
    open_more(person)
    person.page.locator("#runs").get_by_role("button", name="close B").click()
    expect(person.page.locator("#strip-b, .of-b:visible")).to_have_count(1)
    expect(person.page.locator("#strip-b")).to_be_hidden()
    expect(person.page.locator("#runs .ways")).to_be_visible()
    expect(person.page.locator("#attention-stages .plot")).to_be_visible()


def expect_both_runs_drawn(person):
    """Expect A | B to draw both runs' figures, in which a click selects and derives in its own run."""
    show_run(person, "A | B")
    expect(person.page).to_have_url(re.compile("shown=both"))
    own, other = (person.page.locator(f"#attention-pattern{suffix}") for suffix in ("", "-b"))
    expect(own.locator("h2")).to_contain_text("A: ")
    expect(other.locator("h2")).to_contain_text("B: ")
    boxes = [block.bounding_box() for block in (own, other)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    assert boxes[0]["width"] == pytest.approx(boxes[1]["width"], abs=1)
    expect(person.page.locator("#attention-stages-b .plot .main-svg").first).to_be_visible()  # unfolded like A's
    row, last = find_tokens_b(person).count() - 1, person.chips.count() - 1
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
    for suffix, letter in (("", "A"), ("-b", "B")):  # without a heading, the letter precedes the path
        path = person.page.locator(f"#overview-whole{suffix} .path")
        expect(path).to_be_visible()
        assert path.evaluate("path => getComputedStyle(path, '::before').content") == f'"{letter}: "'
    person.page.evaluate(f"window.explorer.select({{ view: 'prediction', query: {last} }})")
    for suffix in ("", "-b"):  # each lens shows its row labels beside the selected column
        frame = person.page.locator(f"#prediction-lens{suffix} .shapelayer path").last
        expect(frame).to_be_visible()
        assert frame.evaluate(IS_WITHIN_FIGURE)
        assert person.page.locator(f"#prediction-lens{suffix} .ytick text").first.evaluate(IS_WITHIN_FIGURE)
    lenses = [person.page.locator(f"#prediction-lens{suffix} .plot").bounding_box() for suffix in ("", "-b")]
    assert lenses[0]["height"] == lenses[1]["height"]
    assert lenses[1]["y"] + lenses[1]["height"] - lenses[0]["y"] < person.page.viewport_size["height"]
    person.page.evaluate("window.explorer.select({ view: 'attention' })")
    person.wait_until_idle()


def test_comparison_view_pairs_own_prompt_automatically(open_new_page):
    person = open_new_page().open("compare", depth="story", text="I had a nice day at the beach")
    box = person.page.get_by_role("textbox", name="the other prompt")
    expect(person.page.locator("#compare-streams .plot")).to_be_visible()
    expect(box).to_be_hidden()
    assert person.page.locator("#compare-streams").bounding_box()["y"] <= 230
    words = [person.page.locator(f"{strip} .chip").all_text_contents() for strip in ("#strip", "#strip-b")]
    assert words[0][0] == words[1][0] and sum(a != b for a, b in zip(*words, strict=True)) == 1
    expect(person.page.locator("#strip-b .meaning")).to_have_text("surprises B more")
    for strip, is_blue in (("#strip", True), ("#strip-b", False)):  # the colours of the A − B figures
        colour = person.page.locator(f"{strip} .meaning i").evaluate("(i) => getComputedStyle(i).backgroundColor")
        red, _green, blue = map(float, re.findall(r"[\d.]+", colour)[:3])
        assert (blue > red) is is_blue, colour
    person.page.locator("#runs .about").click()
    box.fill("I had a day")
    box.press("Enter")
    expect(person.page.locator("#strip-b .strip")).to_have_text("I had a day")
    expect(box).to_be_hidden()


def test_facts_of_both_runs_are_listed_and_differences_coloured(open_new_page):
    person = open_new_page().open("compare", unfolded="compare-facts")
    facts = person.page.locator("#compare-facts .plot")
    expect(facts).to_contain_text("mean loss per token, nats")
    texts, painted = facts.evaluate(CELL_TEXTS), cell_colours(facts, (14, 3)).sum(axis=-1)[:6, :2]
    assert facts.evaluate(TICKS, "x") == ["A", "B", "A − B"]
    assert texts["0, 0"] == texts["1, 0"] == "tiny"
    for row, (a, b) in enumerate(painted):
        assert a == b and (a < painted.max()) == (texts[f"0, {row}"] != texts[f"1, {row}"])
    likeliest = [texts[f"{column}, 6"].replace("−", "-") for column in range(3)]
    a, b, difference = map(float, likeliest)
    assert difference == pytest.approx(a - b, rel=0.02)
    for run in ("B", "A"):  # the table of the next token beside it
        person.page.get_by_role("button", name=f"show {run}").click()
        expect(person.page.locator("#answer .of-run")).to_contain_text(f"· {run}")
        heading = person.page.locator("#answer header h2")
        expect(heading).to_have_attribute("title", re.compile("^Next token after “.+”$"))
        assert heading.evaluate("title => title.scrollWidth <= title.clientWidth")  # whole


def test_element_ids_are_unique_with_both_runs_drawn(open_new_page):
    person = open_new_page().open("overview", shown="both", **{"b.text": OTHER_PROMPT})
    expect(person.page.locator("#overview-whole-b .drawing")).to_be_visible()
    counts = "[...document.querySelectorAll('[id]:not([id=\"\"])')].map(({ id }) => id)"
    ids = person.evaluate(counts)
    assert len(ids) == len(set(ids))


@pytest.mark.exhaustive
def test_prompt_of_b_can_be_replaced(person):
    compare(person)
    bar = person.page.locator("#runs")
    expect(bar.get_by_role("button", name="another prompt")).to_be_hidden()
    open_more(person)
    bar.get_by_role("button", name="another prompt").click()
    expect(person.page.get_by_label("the other prompt")).to_have_value(OTHER_PROMPT)
    person.page.keyboard.press("Escape")
    expect(bar.locator(".switch")).to_be_visible()
    open_more(person)
    bar.get_by_role("button", name="another prompt").click()
    person.page.get_by_label("the other prompt").fill("Once upon a day")
    bar.get_by_role("button", name="Compare", exact=True).click()
    expect(person.page.locator("#strip-b .strip")).to_have_text("Once upon a day")
    expect(bar.locator(".switch")).to_be_visible()


@pytest.mark.exhaustive
def test_figures_show_latest_selection_after_switching_runs(person):
    """Select a head, or change B, between two clicks on the run switch, however fast."""
    compare(person)
    changes = {
        "head": lambda: person.evaluate("actions.select({ layer: 1, head: 0 })"),
        "change of B": lambda: person.evaluate("actions.setInterventions(['blocks.0.attn.z.0*zero'], 'b.edits')"),
    }
    other_choices = {"B": ("A", "A − B"), "A − B": ("A", "B")}
    for change, last in zip(changes.values(), ("B", "A − B"), strict=True):
        for name in other_choices[last]:
            find_switch(person, name).click()
        change()
        with person.wait_for_redraw(person.pattern):
            find_switch(person, last).click()
        expect(person.wait_until_idle().page.locator(".stale:visible")).to_have_count(0)
        expect_painted(person)


@pytest.mark.exhaustive
def test_thumbnails_follow_chosen_run(person):
    """Thumbnails of heads and their badge belong to the run that the large figure shows."""
    compare(person)
    mark = person.page.locator("#attention-heads .evidence-mark")
    expect(mark).to_have_text(re.compile("A: .*; B: "))
    tokens = {"A": person.chips.count(), "B": find_tokens_b(person).count()}
    for name in ("B", "A", "B"):
        with person.wait_for_redraw(person.grid):
            find_switch(person, name).click()
        person.wait_until_idle()
        image = read_pixels(person.grid.locator(".head img").first)
        assert len(image) == tokens[name]
        assert (
            image[0, 0] == scale_colours(LIGHT.sequential, np.array(1.0))
        ).all()  # the first token attends to itself only
        expect(mark).to_have_text(re.compile("^recomputed"))


@pytest.mark.exhaustive
def test_click_in_b_selects_aligned_token_in_a(person):
    compare(person)
    show_run(person, "B")
    row = find_tokens_b(person).count() - 1
    person.click_cell(person.pattern, row - 2, row)
    last = person.chips.count() - 1
    person.expect_selected(query=last, key=last - 2)
    expect(find_tokens_b(person).nth(row)).to_have_attribute("aria-selected", "true")
    find_tokens_b(person).nth(1).click()
    person.expect_selected(query=1)
    expect(person.chips.nth(1)).to_have_attribute("aria-selected", "true")


def test_rare_comparison_actions_are_in_menu(open_page):
    person = open_page(**{"b.text": OTHER_PROMPT})
    more = person.page.get_by_role("button", name="more of the two runs")
    copy = person.page.get_by_role("button", name="copy A to B")
    expect(copy).to_be_hidden()
    for close in (lambda: person.page.keyboard.press("Escape"), person.page.locator("#next-token-words").click):
        more.click()
        expect(copy).to_be_in_viewport(ratio=1)
        copy.click(trial=True)  # fails if another element covers it
        close()
        expect(copy).to_be_hidden()
        expect(more).to_have_attribute("aria-expanded", "false")
    more.click()
    copy.click()
    expect(person.page.locator("#strip-b .strip")).to_have_text(FIRST_PROMPT)


@pytest.mark.exhaustive
def test_tokens_are_aligned_manually(person):
    compare(person)
    person.chips.nth(7).click()
    open_more(person)
    person.page.locator("#runs").get_by_role("button", name="pair two tokens by hand").click()
    find_tokens_b(person).nth(9).click()
    expect(person.page.locator("#runs .aligned:not(.about-b)")).to_contain_text("as you paired them")
    expect(find_tokens_b(person).nth(9)).to_have_attribute("aria-selected", "true")
    open_more(person)
    person.page.locator("#runs").get_by_role("button", name="align again").click()
    expect(person.page.locator("#runs .aligned:not(.about-b)")).to_contain_text("both texts share")


@pytest.mark.exhaustive
def test_run_is_compared_with_itself_without_interventions(open_page):
    person = open_page(edits="blocks.0.attn.z.1*zero")
    person.open_menu("#runs .menu").get_by_role("button", name="without the changes").click()
    expect(person.page.locator("#strip-b")).to_be_visible()
    expect(person.page.locator("#runs .about")).to_contain_text("without the changes")
    person.tab("Compare")
    formula = person.page.locator("#compare-formula")
    expect(formula).to_contain_text("A and B first differ at blocks.0.attn.z")
    for name in ("streams", "heads", "parts", "next_token", "text"):
        expect(person.page.locator(f"#compare-{name} .main-svg").first).to_be_visible()


@pytest.mark.exhaustive
def test_other_model_reads_same_text_while_generating(person):
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
def test_two_runs_fit_screen(open_page, width):
    """The next tokens of both, with default settings, fit too."""
    person = open_page(viewport={"width": width, "height": 844}, **{"b.text": OTHER_PROMPT})
    expect(person.page.locator("#strip-b .strip")).to_have_text(OTHER_PROMPT)
    person.wait_until_idle()
    assert person.page.evaluate("document.documentElement.scrollWidth") <= width
    table = person.prediction.locator(".table")
    expect(table.locator("thead th")).to_have_count(9)
    assert table.evaluate("(table) => table.scrollWidth - table.clientWidth") <= 0


@pytest.mark.parametrize("width", [1024, 1366])
def test_table_of_changed_pair_fits_and_patching_names_unchanged_model(open_new_page, width):
    fields = {"edits": "blocks.0.attn.z.1*zero", "b.text": OTHER_PROMPT}
    person = open_new_page(viewport={"width": width, "height": 768}).open("attention", **fields)
    run = person.page.locator("#answer .of-run")
    expect(run.get_by_role("button")).to_be_visible()
    assert run.bounding_box()["height"] < 28  # the run and its button, in one line
    person.page.locator("[data-shows=stages]").click()
    expect(person.page.locator("#next-token th.scaled")).to_be_hidden()
    table = person.prediction.locator(".table.two-runs")
    assert table.evaluate("(table) => table.scrollWidth - table.clientWidth") <= 0
    expect(person.page.locator("#changes")).to_contain_text(re.compile(r"^\s*A is changed: "))
    person.visit("patching", "Patching")
    changes = person.page.locator("#changes")
    expect(changes).to_contain_text("The maps are of the unchanged model.")
    edit = person.state["edits"]
    person.evaluate(f"actions.setInterventions([{edit!r}], 'b.edits')")
    expect(changes).to_contain_text("B is changed")
    expect(changes.get_by_text("The maps are of the unchanged model.")).to_have_count(1)
    person.evaluate("actions.setInterventions([])")
    expect(changes.locator("[data-edit]")).to_have_count(1)
    expect(changes).to_contain_text("The maps are of the unchanged model.")


@pytest.mark.exhaustive
def test_interventions_of_b_are_removed_by_their_buttons(open_page):
    intervention_b, intervention_a = "blocks.0.attn.z.1*zero", "blocks.1.attn.z.0*zero"
    person = open_page(edits=intervention_a, **{"b.text": OTHER_PROMPT, "b.edits": intervention_b})
    interventions_text = person.page.locator("#changes")
    expect(interventions_text).to_contain_text("B is changed")
    interventions_text.get_by_role("button", name="take back: layer 0 head 1: off").click()
    expect(interventions_text).not_to_contain_text("B is changed")
    person.wait_until_idle()
    assert (person.state["edits"], person.state["b.edits"]) == (intervention_a, "")
    interventions_text.get_by_role("button", name="take back: layer 1 head 0: off").click()
    expect(interventions_text).to_be_hidden()
