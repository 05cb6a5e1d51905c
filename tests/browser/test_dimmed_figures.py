"""Figures of an earlier state are dimmed until the present state's figures are drawn."""

from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from .person import ANSWER


@contextmanager
def hold_answers(person, scope: str):
    """Hold back the answers with a scope until the block ends."""
    waiting, over = [], False

    def hold(route):
        if not over and route.request.post_data_json["about"] == scope:
            waiting.append(route)
        else:
            route.continue_()

    person.page.route(ANSWER, hold)
    yield
    over = True
    for route in waiting:
        route.continue_()
    person.page.unroute(ANSWER, hold)


@pytest.mark.exhaustive
def test_outdated_figure_is_dimmed_until_redrawn(person):
    figure, prediction = person.page.locator("#attention-pattern"), person.page.locator("#next-token")
    expect(figure).not_to_contain_class("stale")
    person.wait_until_idle()
    with hold_answers(person, "pick"):
        person.chips.nth(3).click()
        for old in (figure, prediction, person.page.locator("#attention-formula")):
            expect(old).to_contain_class("stale")
            expect(old.locator(".html-container")).to_have_css("opacity", "0.4")
        draws = person.pattern.get_attribute("data-draws")
    expect(figure).not_to_contain_class("stale")
    expect(person.pattern).not_to_have_attribute("data-draws", draws)
    expect(figure.locator(".html-container")).to_have_css("opacity", "1")
    expect(person.page.locator(".stale:visible")).to_have_count(0)


@pytest.mark.exhaustive
def test_figures_are_dimmed_during_generation(person):
    person.set_length(4)
    person.wait_until_idle()
    with hold_answers(person, "show"):
        person.page.locator("#generate").click()
        expect(person.chips.last).to_contain_class("generated")
        expect(person.page.locator("#attention-pattern")).to_contain_class("stale")
        expect(person.page.locator("#attention-heads")).to_contain_class("stale")
    expect(person.page.locator(".stale:visible")).to_have_count(0)
