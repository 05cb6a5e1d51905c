"""Back and Forward between tabs and runs, without losses; the theme persists."""

import re

import pytest
from playwright.sync_api import expect

from explorer.views.style import DARK

from .test_generation import LONG


def selected_tab(person):
    return person.page.locator("#views [role=tab][aria-selected=true]")


def test_back_restores_tabs_and_runs_without_reload(person):
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
def test_back_keeps_tokens_generated_since(person):
    person.tab("Tokens")
    person.generate(4)
    person.run("The owl asked")
    person.page.go_back()
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(4)
    person.page.go_back()
    expect(selected_tab(person)).to_have_text("Attention")
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(4)


@pytest.mark.exhaustive
def test_back_to_another_run_stops_generation(open_page):
    person = open_page(**LONG)
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
def test_reload_keeps_history(person):
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
def test_chosen_theme_survives_reload(open_new_page):
    person = open_new_page(color_scheme="light").open()
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
def test_theme_in_url_and_system_theme_apply(open_new_page):
    person = open_new_page(color_scheme="dark").open()
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
def test_gradio_api_panel_keeps_view_in_url(open_new_page):
    person = open_new_page().open("tokens", depth="code")
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
    ]  # it requests an endpoint that is disabled here


def test_undo_restores_earlier_prompt_and_its_continuation(open_new_page):
    """Undo by the button and by Ctrl Z; in a text box Ctrl Z is the browser's."""
    person = open_new_page().open()  # without an earlier prompt
    undo, names = person.page.locator("#undo"), ("query", "generated", "prompt")
    text = person.prompt.input_value()
    expect(undo).to_be_disabled()
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(1)
    before = person.wait_until_idle().state
    person.unfold_changes()
    person.page.locator(".what-ifs label:visible input[type=checkbox]").first.check()
    assert person.wait_until_idle().state["edits"]
    expect(undo).to_have_attribute("data-unit", "the change")
    person.page.keyboard.press("Control+z")  # the intervention was last, so the token stays
    after = person.wait_until_idle().state
    assert (after["edits"], after["generated"]) == ("", before["generated"])
    for press in (undo.click, lambda: person.page.keyboard.press("Control+z")):
        person.run("The owl asked")
        expect(person.strip).to_have_text("The owl asked")
        person.wait_until_idle().chips.first.focus()
        press()
        expect(person.prompt).to_have_value(text)
        after = person.wait_until_idle().state
        assert [after[name] for name in names] == [before[name] for name in names]
    person.page.go_back()  # undoing is a step of the history
    expect(person.strip).to_have_text("The owl asked")
    person.wait_until_idle()
    person.prompt.fill("the fox")
    person.prompt.press("Control+z")
    assert person.wait_until_idle().state["prompt"] != before["prompt"]
