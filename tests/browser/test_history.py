"""Back and Forward between tabs and runs, without losses; the theme persists."""

import re

import pytest
from playwright.sync_api import expect

from explorer.views.style import DARK

from .test_generation import LONG


def selected_tab(person):
    return person.page.locator("#views [role=tab][aria-selected=true]")


def test_back_goes_through_tabs_and_runs_without_a_reload(person):
    person.page.evaluate("window.same = true")
    first = person.strip.text_content()
    person.tab("Tokens")
    person.chips.nth(3).click()
    person.expect_selected(view="tokens", query=3)
    person.run("The owl asked")
    person.tab("Attention")
    person.expect_selected(view="attention")

    person.page.go_back()
    expect(selected_tab(person)).to_have_text("Tokens")
    expect(person.strip).to_have_text("The owl asked")
    person.page.go_back()
    expect(person.strip).to_have_text(first)
    expect(person.prompt).to_have_value(first)
    person.expect_selected(view="tokens", query=3)
    expect(person.chips.nth(3)).to_have_attribute("aria-selected", "true")
    person.page.go_back()
    expect(selected_tab(person)).to_have_text("Attention")
    person.expect_selected(view="attention", query=3)
    for _ in range(3):
        person.page.go_forward()
    expect(person.strip).to_have_text("The owl asked")
    expect(person.prompt).to_have_value("The owl asked")
    expect(selected_tab(person)).to_have_text("Attention")
    assert person.page.evaluate("window.same")


@pytest.mark.exhaustive
def test_back_finds_what_was_written_since(person):
    person.tab("Tokens")
    person.generate(4)
    person.run("The owl asked")
    person.page.go_back()
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(4)
    person.page.go_back()
    expect(selected_tab(person)).to_have_text("Attention")
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(4)


@pytest.mark.exhaustive
def test_back_to_another_run_ends_what_is_being_written_and_sets_the_widgets(visitor):
    person = visitor(**LONG)
    person.choose_model("one-head")
    expect(person.page.locator("#facts")).to_contain_text("1 layer × 1 head")
    person.run("The owl asked")
    person.page.locator("#generate").click()
    generated = person.chips.and_(person.page.locator(".generated"))
    expect(generated.nth(2)).to_be_attached()
    person.page.go_back()
    expect(generated).to_have_count(0)
    person.page.go_back()
    expect(person.picker).to_have_value("tiny")
    expect(person.page.locator("#facts")).to_contain_text("2 layers × 2 heads")
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(generated).to_have_count(1)


@pytest.mark.exhaustive
def test_a_reload_keeps_the_steps(person):
    person.tab("Tokens")
    person.run("The owl asked")
    person.page.wait_for_url("**prompt=**")
    person.page.reload()
    expect(person.strip).to_have_text("The owl asked")
    person.page.go_back()
    expect(selected_tab(person)).to_have_text("Tokens")
    expect(person.strip).not_to_have_text("The owl asked")
    expect(person.prompt).to_have_value(person.strip.text_content())


@pytest.mark.exhaustive
def test_the_chosen_theme_outlives_a_reload_and_is_there_from_the_first(newcomer):
    person = newcomer(color_scheme="light").open()
    assert not person.page.evaluate("document.body.classList.contains('dark')")
    person.change_theme()
    person.page.reload()
    expect(person.pattern).to_have_attribute("data-draws", "1")
    drawn_in = person.page.evaluate("document.querySelector('#attention-pattern .plot')._fullLayout.font.color")
    assert drawn_in == DARK.text
    assert person.page.evaluate("document.body.classList.contains('dark')")
    person.page.emulate_media(color_scheme="dark")
    person.page.emulate_media(color_scheme="light")  # Gradio follows the system's theme
    person.page.wait_for_function("document.body.classList.contains('dark')")


@pytest.mark.exhaustive
def test_the_address_and_the_system_say_the_theme_otherwise(newcomer):
    person = newcomer(color_scheme="dark").open()
    assert person.page.evaluate("document.body.classList.contains('dark')")
    person.change_theme()
    person.open(__theme="dark")
    assert person.page.evaluate("document.body.classList.contains('dark')")
    person.change_theme()
    expect(person.page).not_to_have_url(re.compile("__theme"))
    person.page.reload()
    expect(person.pattern).to_have_attribute("data-draws", "1")
    assert not person.page.evaluate("document.body.classList.contains('dark')")


@pytest.mark.exhaustive
def test_gradio_s_panel_for_programs_takes_no_tab_out_of_the_address(newcomer):
    person = newcomer().open("tokens", depth="code")
    state, complaints = "history.state.state.view", person.complaints
    person.page.get_by_role("button", name="Use via API").click()
    expect(person.page.locator(".api-docs")).to_be_visible()
    assert (person.url["view"], person.page.evaluate(state)) == ("tokens", "tokens")
    person.page.locator(".api-docs-wrap button").first.click()
    expect(person.page.locator(".api-docs")).to_be_hidden()
    assert (person.url["view"], person.page.evaluate(state)) == ("tokens", "tokens")
    person.page.reload()
    expect(selected_tab(person)).to_have_text("Tokens")
    complaints[:] = [
        complaint for complaint in complaints if "404" not in complaint
    ]  # it asks for what is not offered here


def test_undo_brings_back_the_prompt_before_with_what_was_generated(newcomer):
    """Undo by the button and by Ctrl Z; in a box that somebody types in, the key is the browser's."""
    person = newcomer().open()  # without a prompt before this one
    undo, names = person.page.locator("#undo"), ("query", "generated", "prompt")
    text = person.prompt.input_value()
    expect(undo).to_be_disabled()
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(1)
    before = person.at_rest().state
    person.unfold_changes()
    person.page.locator(".what-ifs label:visible input[type=checkbox]").first.check()
    assert person.at_rest().state["edits"]
    expect(undo).to_have_attribute("data-unit", "the change")
    person.page.keyboard.press("Control+z")  # the change was last, so the token stays
    after = person.at_rest().state
    assert (after["edits"], after["generated"]) == ("", before["generated"])
    for press in (undo.click, lambda: person.page.keyboard.press("Control+z")):
        person.run("The owl asked")
        expect(person.strip).to_have_text("The owl asked")
        person.at_rest().chips.first.focus()
        press()
        expect(person.prompt).to_have_value(text)
        after = person.at_rest().state
        assert [after[name] for name in names] == [before[name] for name in names]
    person.page.go_back()  # what was undone is a step of the history
    expect(person.strip).to_have_text("The owl asked")
    person.at_rest()
    person.prompt.fill("the fox")
    person.prompt.press("Control+z")
    assert person.at_rest().state["prompt"] != before["prompt"]
