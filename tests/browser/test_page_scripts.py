"""`window.explorer`, the API with which scripts read and control the page."""


def test_script_selects_and_waits_until_page_is_drawn(open_page):
    person = open_page("attention", layer=0, head=0)
    draws = person.page.evaluate(
        """async () => {
          await explorer.select({ layer: 1, head: 1, query: 3, temperature: 0.5 });
          return document.querySelector("#attention-pattern .plot").dataset.draws;
        }"""
    )
    after = person.page.evaluate("explorer.state")
    assert (after["layer"], after["head"], after["query"], after["temperature"]) == (1, 1, 3, 0.5)
    assert person.page.evaluate("explorer.settled().then(() => document.querySelectorAll('.stale').length)") == 0
    assert person.page.evaluate('document.querySelector("#attention-pattern .plot").dataset.draws') == draws
    assert person.page.locator("#temperature input[type=number]").input_value() == "0.5"


def test_script_opens_another_view(open_page):
    person = open_page("attention")
    person.page.evaluate("explorer.select({ view: 'residual' })")
    person.page.wait_for_function("explorer.state.view == 'residual'")
    assert person.page.evaluate(
        "explorer.settled().then(() => document.querySelectorAll('#residual-tab .main-svg').length > 0)"
    )


def test_state_is_copy_and_unknown_fields_are_refused(open_page):
    person = open_page("attention")
    assert person.page.evaluate("() => { explorer.state.layer = 5; return explorer.state.layer }") != 5
    message = person.page.evaluate("explorer.select({ layr: 1 }).catch((error) => error.message)")
    assert message.startswith("unknown: layr; select takes ") and "layer" in message
