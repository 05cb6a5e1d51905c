"""Explanation of a prediction: shown on request, and each clause leads to its figure."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from explorer.analysis.prediction_reasons import prediction_reasons
from explorer.lessons.prediction_explanation import explain_prediction
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.browser_api.page_contents import next_token_distribution_in_run

from .person import ANSWER


def make_expected_clauses(state: dict) -> list:
    """Return the clauses that the page should show for its state."""
    runs, page_state = RunService(ModelLibrary("cpu")), PageState.parse(state)
    _lm, trace = runs.model_and_trace(page_state.run)
    reasons = prediction_reasons(trace, page_state.selection.query, page_state.selection.target)
    settings = GenerationSettings.parse(state)
    prediction = next_token_distribution_in_run(page_state.run, page_state.selection.query, settings, trace)
    return list(explain_prediction(trace, page_state.selection.query, reasons, prediction))


@pytest.mark.exhaustive
def test_every_clause_leads_to_its_figure(person):
    panel = person.page.locator("#why-token")
    button, sentences = panel.locator(".asked"), panel.locator(".clauses a")
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(sentences).to_have_count(0)
    person.page.wait_for_function("!document.querySelector('#why-token').dataset.oldSince")  # or else it is dimmed
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    panel.get_by_role("button", name="more").click()
    for position in (2, 5):
        with person.wait_for_redraw(panel.locator(".clauses")):
            person.chips.nth(position).click()
        expected = make_expected_clauses(person.state)
        expect(sentences).to_have_text([clause.text for clause in expected])
    for i, clause in enumerate(expected):
        address = parse_qs(urlsplit(sentences.nth(i).get_attribute("href")).query)
        # defaults are omitted
        named = {name: str(value) for name, value in clause.selection_change.items() if name in address}
        assert named and {name: address[name] for name in named} == {name: [value] for name, value in named.items()}
        sentences.nth(i).click()
        person.expect_selected(**clause.selection_change)
        figure = person.page.locator(f"#{clause.figure_id} [data-draws]")
        expect(figure).to_be_in_viewport()


def test_url_can_open_explanation(open_new_page):
    person = open_new_page().open(text="The fox", why="open", target=2)
    sentences = person.page.locator("#why-token .clauses a")
    expect(sentences.first).to_be_visible()
    expect(person.strip).to_have_text("The fox")
    expect(person.prompt).to_have_value("The fox")
    panel, expected = person.page.locator("#why-token"), [clause.text for clause in make_expected_clauses(person.state)]
    assert sentences.all_text_contents() == expected[:3]
    panel.get_by_role("button", name="more").click()
    assert sentences.all_text_contents() == expected
    switch_head_off_and_back(person, panel)
    target = re.search("“[^”]*”", expected[0])[0]
    panel.get_by_role("button", name=f"Why {target}?").click()
    expect(sentences.first).to_be_hidden()


def switch_head_off_and_back(person, panel):
    """Switch the first head off, check the displayed effect, and switch it on again."""
    switch = panel.get_by_role("button", name="Switch this head off")
    switch.first.click()
    line = panel.locator(".switched-off")
    expect(line).to_have_text(
        re.compile(r"^Layer \d head \d is off: [\d.]+% → [\d.]+% after temperature and filters Put it back$")
    )
    person.wait_until_idle()
    layer, head = re.findall(r"\d+", line.text_content())[:2]
    assert person.state["edits"] == f"blocks.{layer}.attn.z.{head}*zero"
    person.expect_selected(layer=int(layer), head=int(head))
    expect(switch).to_have_count(0)
    line.get_by_role("button", name="Put it back").click()
    expect(line).to_have_count(0)
    expect(switch.first).to_be_visible()
    assert not person.wait_until_idle().state["edits"]


@pytest.mark.exhaustive
def test_linked_figure_stays_visible_when_content_grows_above(open_page):
    person = open_page("prediction", text="The fox", why="open", target=2)
    link, held = person.page.locator("#why-token .clauses a").first, []
    expect(link).to_be_visible()
    figure = make_expected_clauses(person.state)[0].figure_id
    person.wait_until_idle().page.route(ANSWER, lambda route: route.continue_() if held else held.append(route))
    with person.page.expect_request(ANSWER):
        link.click()
    person.page.locator(f"#{figure}").evaluate(
        "({ parentElement }) => { parentElement.style.paddingTop = '3000px'; }",
    )
    expect(person.page.locator(f"#{figure}")).not_to_be_in_viewport()
    held[0].continue_()
    expect(person.page.locator(f"#{figure} [data-draws]")).to_be_in_viewport()
    person.page.locator(f"#{figure}").evaluate("({ parentElement }) => { parentElement.style.paddingTop = ''; }")
