"""A server that stops and starts again while a user looks at the page."""

import re

import pytest
from playwright.sync_api import expect

from .lost import IS_CONSISTENT, banner, generate_tokens


def test_without_a_connection_the_page_says_so_and_catches_up(somebody):
    person = somebody(temperature=0, max_new_tokens=40, unfolded="all")
    expect(banner(person)).to_have_text("")
    generate_tokens(person, 5)
    person.page.context.set_offline(True)
    expect(banner(person)).to_have_text("The server does not answer. The page updates itself once it does.")
    person.tab("Residual stream")
    person.chips.nth(2).click()
    person.prompt.fill("typed meanwhile")
    person.page.context.set_offline(False)
    expect(banner(person)).to_have_text("")
    expect(person.page.locator("#residual-norms .plot")).to_have_attribute("data-draws", re.compile(r"\d"))
    person.wait_until("page.state.generated.length === 40")  # or else the last token is not the last for long
    person.tab("Attention")
    person.chips.last.click()
    person.wait_until(IS_CONSISTENT)
    expect(person.prompt).to_have_value("typed meanwhile")


@pytest.mark.exhaustive
def test_a_server_that_was_started_anew_goes_on_where_the_other_ended(somebody, server):
    person = somebody(server.address, temperature=0, max_new_tokens=512)
    generate_tokens(person, 5)
    server.stop()
    expect(banner(person)).to_contain_text("The server does not answer")
    expect(person.page.locator(".toast-body")).not_to_be_visible()
    person.prompt.fill("typed <b>meanwhile</b>")
    generated = person.state["generated"]
    assert generated
    server.start()
    expect(banner(person)).to_have_text("Writing was interrupted: press Generate to go on.")
    person.wait_until(IS_CONSISTENT)
    assert person.state["generated"] == generated
    expect(person.prompt).to_have_value("typed <b>meanwhile</b>")
    person.page.locator("#generate").click()
    person.wait_until("page.state.generated.length > given", len(generated))
    expect(banner(person)).to_have_text("")
    person.page.get_by_role("button", name="Stop").click()
    person.page.reload()
    expect(person.prompt).to_have_value("typed <b>meanwhile</b>")
    person.prompt.press("Enter")
    expect(person.story.locator(".prompt")).to_have_text("typed <b>meanwhile</b>")


@pytest.mark.exhaustive
def test_a_button_that_nobody_answers_is_told_and_changes_nothing(somebody, server):
    person = somebody(server.address)
    before = person.at_rest().state
    server.stop()
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(banner(person)).to_contain_text("The server does not answer")
    server.start()
    expect(banner(person)).to_have_text("")
    person.wait_until(IS_CONSISTENT)
    now = person.state
    assert {name: now[name] for name in ("prompt", "generated", "view")} == {
        name: before[name] for name in ("prompt", "generated", "view")
    }
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(1)


@pytest.mark.exhaustive
def test_a_click_that_nobody_answers_is_answered_later(somebody):
    person = somebody()
    person.page.context.set_offline(True)
    person.click_cell(person.pattern, 1, 2)
    expect(banner(person)).to_contain_text("The server does not answer")
    person.page.context.set_offline(False)
    expect(banner(person)).to_have_text("")
    expect(person.page.locator("#next-token-words")).to_contain_text("(position 2)")


def test_what_is_broken_on_our_side_is_told_and_the_next_question_answered(somebody, monkeypatch):
    person = somebody(seed=4711)  # a run without cached answers

    def raise_error(*args):
        raise ZeroDivisionError("of ours")

    with monkeypatch.context() as broken:
        broken.setattr("explorer.web.browser_api.page_contents.next_token_distribution_in_run", raise_error)
        person.chips.nth(2).click()
        problem = person.page.locator("#problem")
        expect(problem).to_contain_text(re.compile(r"Internal error \(not your fault\)\. It was logged as [0-9a-f]{8}"))
    expect(banner(person)).to_have_text("")
    person.chips.nth(3).click()
    expect(person.page.locator("#next-token-words")).to_contain_text("(position 3)")
    expect(problem).not_to_be_visible()


@pytest.mark.exhaustive
def test_a_widget_that_fails_leaves_the_others_alone(somebody):
    person = somebody()
    person.evaluate("""
      contents.onContent(document.querySelector("#strip .strip"), () => { if (window.failing) throw Error("a slip"); }),
      window.failing = true
    """)
    with person.redrawn(person.prediction, person.story, person.pattern):
        person.prompt.fill("the owl and the fox")
        person.prompt.press("Enter")
    expect(person.page.locator("#problem")).to_contain_text("could not be drawn")
