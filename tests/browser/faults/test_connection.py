"""A server that stops and restarts while a user looks at the page."""

import re

import pytest
from playwright.sync_api import expect

from .servers import IS_CONSISTENT, find_banner, generate_tokens


@pytest.mark.exhaustive
def test_offline_page_shows_banner_and_catches_up(open_unreliable_page):
    person = open_unreliable_page(temperature=0, max_new_tokens=40, unfolded="residual-norms")
    expect(find_banner(person)).to_have_text("")
    generate_tokens(person, 5)
    person.page.context.set_offline(True)
    expect(find_banner(person)).to_have_text("The server does not answer. The page updates itself once it does.")
    person.tab("Residual stream")
    person.chips.nth(2).click()
    person.prompt.fill("typed meanwhile")
    person.page.context.set_offline(False)
    expect(find_banner(person)).to_have_text("")
    expect(person.page.locator("#residual-norms .plot")).to_have_attribute("data-draws", re.compile(r"\d"))
    person.wait_until("page.state.generated.length === 40")  # otherwise the last token changes soon
    person.tab("Attention")
    person.chips.last.click()
    person.wait_until(IS_CONSISTENT)
    expect(person.prompt).to_have_value("typed meanwhile")


@pytest.mark.exhaustive
def test_restarted_server_continues_generation(open_unreliable_page, server):
    person = open_unreliable_page(server.address, temperature=0, max_new_tokens=512)
    generate_tokens(person, 5)
    server.stop()
    expect(find_banner(person)).to_contain_text("The server does not answer")
    expect(person.page.locator(".toast-body")).not_to_be_visible()
    person.prompt.fill("typed <b>meanwhile</b>")
    generated = person.state["generated"]
    assert generated
    server.start()
    expect(find_banner(person)).to_have_text("Writing was interrupted: press Generate to go on.")
    person.wait_until(IS_CONSISTENT)
    assert person.state["generated"] == generated
    expect(person.prompt).to_have_value("typed <b>meanwhile</b>")
    person.page.locator("#generate").click()
    person.wait_until("page.state.generated.length > given", len(generated))
    expect(find_banner(person)).to_have_text("")
    person.page.get_by_role("button", name="Stop").click()
    person.page.reload()
    expect(person.prompt).to_have_value("typed <b>meanwhile</b>")
    person.prompt.press("Enter")
    expect(person.story.locator(".prompt")).to_have_text("typed <b>meanwhile</b>")


@pytest.mark.exhaustive
def test_unanswered_button_shows_banner_and_changes_nothing(open_unreliable_page, server):
    person = open_unreliable_page(server.address)
    before = person.wait_until_idle().state
    server.stop()
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(find_banner(person)).to_contain_text("The server does not answer")
    server.start()
    expect(find_banner(person)).to_have_text("")
    person.wait_until(IS_CONSISTENT)
    now = person.state
    assert {name: now[name] for name in ("prompt", "generated", "view")} == {
        name: before[name] for name in ("prompt", "generated", "view")
    }
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips.and_(person.page.locator(".generated"))).to_have_count(1)


@pytest.mark.exhaustive
def test_unanswered_click_is_answered_after_reconnect(open_unreliable_page):
    person = open_unreliable_page()
    person.page.context.set_offline(True)
    person.click_cell(person.pattern, 1, 2)
    expect(find_banner(person)).to_contain_text("The server does not answer")
    person.page.context.set_offline(False)
    expect(find_banner(person)).to_have_text("")
    expect(person.page.locator("#next-token-words")).to_contain_text("(position 2)")


def test_internal_error_is_shown_and_next_request_works(open_unreliable_page, monkeypatch):
    person = open_unreliable_page(seed=4711)  # a run without cached answers

    def raise_error(*args):
        raise ZeroDivisionError("of ours")

    with monkeypatch.context() as broken:
        broken.setattr("explorer.web.browser_api.page_contents.next_token_distribution_in_run", raise_error)
        person.chips.nth(2).click()
        problem = person.page.locator("#problem")
        expect(problem).to_contain_text(re.compile(r"Internal error \(not your fault\)\. It was logged as [0-9a-f]{8}"))
    expect(find_banner(person)).to_have_text("")
    person.chips.nth(3).click()
    expect(person.page.locator("#next-token-words")).to_contain_text("(position 3)")
    expect(problem).not_to_be_visible()


@pytest.mark.exhaustive
def test_failing_widget_leaves_other_widgets_working(open_unreliable_page):
    person = open_unreliable_page()
    person.evaluate("""
      contents.onContent(document.querySelector("#strip .strip"), () => { if (window.failing) throw Error("a slip"); }),
      window.failing = true
    """)
    with person.wait_for_redraw(person.prediction, person.story, person.pattern):
        person.prompt.fill("the owl and the fox")
        person.prompt.press("Enter")
    expect(person.page.locator("#problem")).to_contain_text("could not be drawn")
