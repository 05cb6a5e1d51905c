"""Choice of models, some of which cannot be loaded, and prompts that cannot be run."""

import re

import pytest
from playwright.sync_api import expect

from explorer.web.actions.page_actions import FIRST_PROMPT
from explorer.web.browser_api.endpoints import FILES_CHANGED

REFUSED = {
    "truncated-weights": ("checkpoint 'truncated-weights' cannot be loaded", "incomplete"),
    "wrong-config": ("checkpoint 'wrong-config' cannot be loaded", "should be (300, 48) by its config"),
}


@pytest.mark.exhaustive
def test_model_without_positions_has_message(person):
    person.tab("Positions")
    figures = person.page.locator("#positions-clocks .plot, #positions-angles .plot")
    expect(figures.first).to_be_visible()
    person.choose_model("no-positions")
    expect(person.page.get_by_text("This model has no positions, so there is nothing to draw.")).to_be_visible()
    for figure in figures.all():
        expect(figure).to_be_hidden()
    person.tab("Attention")
    expect(person.pattern).to_be_visible()
    person.tab("Positions")
    person.choose_model("tiny")
    for figure in figures.all():
        expect(figure).to_be_visible()


@pytest.mark.exhaustive
def test_switch_to_other_architecture_keeps_selection(person):
    generated = person.chips.and_(person.page.locator(".generated"))
    person.chooser("head").select_option("1")
    person.chips.nth(6).click()
    person.choose_model("gpt-twin")
    expect(person.grid.locator(".head")).to_have_count(3 * 4)
    expect(person.page.locator("#facts")).to_contain_text("LayerNorm · sinusoidal positions · ReLU")
    expect(person.strip).to_have_text(FIRST_PROMPT)
    person.expect_selected(checkpoint="gpt-twin", head=1, query=6)
    person.tab("Positions")
    for name in ("vectors", "curves", "alike", "by_distance", "shares"):
        expect(person.page.locator(f"#positions-{name} .main-svg").first).to_be_visible()
    expect(person.page.locator("#positions-clocks")).to_be_hidden()
    person.tab("Attention")
    with person.wait_for_redraw(person.pattern):
        person.grid.locator("[data-layer='2'][data-head='3']").click(position={"x": 5, "y": 30})
    expect(person.pattern).to_have_attribute("aria-label", re.compile("layer 2 head 3"))
    expect(person.page.locator("#attention-formula")).to_contain_text("recomputed from q and k, off by")
    person.tab("Activations")
    person.chooser("tap").select_option("position_embed")
    heatmap = person.page.locator("#activations-heatmap .plot")
    expect(heatmap).to_have_attribute("aria-label", re.compile("position_embed"))
    person.set_length(3)
    person.page.locator("#generate").click()
    expect(generated).to_have_count(3)
    person.choose_model("tiny")
    person.expect_selected(checkpoint="tiny", layer=1, head=1, tap="embed")
    expect(generated).to_have_count(3)
    expect(heatmap).to_have_attribute("aria-label", re.compile("embed: "))
    person.tab("Positions")
    expect(person.page.locator("#positions-clocks .main-svg").first).to_be_visible()


@pytest.mark.exhaustive
def test_every_model_keeps_its_own_continuations(person):
    def snapshot():
        return (
            person.story.text_content(),
            person.branches.all_inner_texts(),
            person.state["began"],
        )

    person.generate(4)
    text = person.story.text_content()
    with person.wait_for_new_tree():
        person.page.get_by_role("button", name="Another ending").click()
    expect(person.branches).to_have_count(2)
    of_tiny = snapshot()
    with person.wait_for_new_tree():
        person.choose_model("gpt-twin")
    person.wait_until("page.state.checkpoint === 'gpt-twin'")
    expect(person.story).to_have_text(of_tiny[0])  # the text is kept
    expect(person.branches).to_have_count(1)
    with person.wait_for_new_tree():
        person.page.get_by_role("button", name="Step", exact=True).click()
    of_gpt = snapshot()
    with person.wait_for_new_tree():
        person.choose_model("tiny")
    expect(person.story).to_have_text(of_tiny[0])
    assert snapshot() == of_tiny and text != of_tiny[0]
    person.page.wait_for_url("**checkpoint=tiny**")
    person.page.reload()
    expect(person.branches).to_have_count(2)
    with person.wait_for_new_tree():
        person.choose_model("gpt-twin")
    expect(person.story).to_have_text(of_gpt[0])
    assert snapshot() == of_gpt


@pytest.mark.exhaustive
def test_model_change_stops_generation_and_keeps_text(open_page):
    person = open_page(temperature=0, max_new_tokens=512)
    generated = person.chips.and_(person.page.locator(".generated"))
    person.page.locator("#generate").click()
    expect(generated.nth(2)).to_be_attached()
    with person.wait_for_new_tree():
        person.choose_model("no-positions")
    person.wait_until("page.state.checkpoint === 'no-positions'")
    count = len(person.state["generated"])
    assert 3 <= count < 512
    person.page.get_by_role("button", name="Step", exact=True).click()
    person.wait_until("page.state.generated.length === given + 1", count)


def test_link_opens_its_model(open_new_page):
    person = open_new_page().open(checkpoint="gpt-twin", layer=2, head=3)
    expect(person.picker).to_have_value("gpt-twin")
    expect(person.pattern).to_have_attribute("aria-label", re.compile("layer 2 head 3"))


@pytest.mark.exhaustive
def test_failed_load_or_empty_prompt_keeps_page(person):
    def snapshot():
        state = person.state
        return person.strip.text_content(), person.story.text_content(), state | {"turn": None}

    person.run("The owl asked")
    before = snapshot()
    for name, sentences in REFUSED.items():
        person.choose_model(name)
        for sentence in sentences:
            expect(person.warning.last).to_contain_text(sentence)
        expect(person.picker).to_have_value("tiny")
        assert snapshot() == before
    person.prompt.fill("")
    person.page.get_by_role("button", name="Run").click()
    expect(person.warning.last).to_contain_text("The prompt is empty")
    assert snapshot() == before
    person.run("The fox")
    expect(person.strip).to_have_text("The fox")


@pytest.mark.exhaustive
def test_new_model_is_listed_and_replaced_files_are_reported(open_new_page, checkpoints):
    person = open_new_page().open()
    later = checkpoints / "later"
    later.symlink_to(checkpoints / "tiny")
    try:
        person.run("the fox")
        person.choose_model("later")
        person.expect_selected(checkpoint="later")
        person.wait_until_idle()  # an answer to an older request clears the message
        message = person.page.locator("#problem")
        expect(message).to_be_hidden()
        (checkpoints / "next").symlink_to(checkpoints / "gpt-twin")
        (checkpoints / "next").replace(later)  # in one step: a reader must never see one file of each
        with person.wait_for_redraw(person.grid):
            person.chips.first.click()
        expect(message).to_have_text(FILES_CHANGED)
        expect(person.grid.locator(".head")).to_have_count(3 * 4)
        person.wait_until_idle()  # the figures further down use the new files
    finally:
        later.unlink()
