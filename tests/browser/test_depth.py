"""The dial: how much the page tells of a view."""

from playwright.sync_api import expect

DEPTH = "document.body.dataset.depth"


def choose_depth(person, depth: str):
    person.page.locator(f"[data-mode={depth}]").click()
    person.page.evaluate("explorer.settled()")


def test_each_depth_tells_more_of_the_same_view(visitor):
    person = visitor("attention")
    page, formula, code = (
        person.page,
        person.page.locator("#attention-formula .formula"),
        person.page.locator("#attention-code"),
    )
    expect(formula).not_to_be_visible()
    choose_depth(person, "formula")
    expect(formula).to_contain_text("score")
    expect(formula).to_be_visible()
    expect(code).not_to_be_visible()
    choose_depth(person, "code")
    expect(formula).to_be_visible()
    expect(code).to_contain_text("shapes in this run: B = 1, T = ")
    expect(code).to_contain_text("model/layers/attention.py")
    choose_depth(person, "story")
    assert page.evaluate("explorer.state.view") != "attention"
    choose_depth(person, "numbers")
    assert page.evaluate("explorer.state.view") == "attention"
    expect(formula).not_to_be_visible()
    expect(code).not_to_be_visible()


def test_the_depth_is_in_the_address_and_remembered(newcomer):
    person = newcomer().open("tokens", depth="code")
    expect(person.page.locator("#tokens-code")).to_contain_text("embed_tokens")
    person.page.wait_for_url("**depth=code**")
    choose_depth(person, "formula")
    person.page.wait_for_url("**depth=formula**")
    again = newcomer().open("positions")
    assert again.page.evaluate(DEPTH) == "formula"


def test_an_older_address_names_the_depth_of_the_stream(newcomer):
    person = newcomer().open("tokens", depth="2")
    assert person.page.evaluate("[explorer.state.residual_depth, explorer.state.depth]") == [2, "numbers"]
