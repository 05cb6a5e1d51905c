"""Faults of a server or its connection while a user looks at the page and generates text."""

import re
import time

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from explorer.web.actions import generation_actions

from .servers import IS_CONSISTENT, find_banner, generate_tokens

TOKEN_DELAY_S = 0.1  # delay of each generated token
CONDITIONS = "Network.emulateNetworkConditions"
SLOW = {"offline": False, "latency": 400, "downloadThroughput": 200_000, "uploadThroughput": 200_000}  # bytes a second


def test_memory_error_is_shown_and_next_request_works(open_unreliable_page, monkeypatch):
    person = open_unreliable_page(text="A question that nobody asked before")  # a prompt without a cached answer
    problem = person.page.locator("#problem")
    for position, takes_too_much in ((2, lambda *args: np.empty(1 << 50)), (1, lambda *args: torch.empty(1 << 50))):
        with monkeypatch.context() as full:
            full.setattr("explorer.web.browser_api.page_contents.next_token_distribution_in_run", takes_too_much)
            person.prompt.fill("typed meanwhile")
            person.chips.nth(position).click()
            expect(problem).to_have_text(re.compile("The server has too little memory for this now"))
        person.chips.nth(3).click()
        expect(person.page.locator("#next-token-words")).to_contain_text("(position 3)")
        expect(problem).not_to_be_visible()
        expect(person.prompt).to_have_value("typed meanwhile")


@pytest.mark.exhaustive
def test_slow_connection_loses_nothing(open_unreliable_page):
    person = open_unreliable_page(temperature=0, max_new_tokens=30)
    line = person.page.context.new_cdp_session(person.page)
    line.send(CONDITIONS, SLOW)
    generate_tokens(person, 3)
    person.prompt.fill("typed meanwhile")
    person.chips.nth(2).click()
    person.tab("Residual stream")
    person.wait_until("page.state.generated.length === 30")
    expect(person.chips).to_have_count(len(person.state["prompt"]) + 30)  # the strip arrives with the last answer
    expect(find_banner(person)).to_have_text("")
    person.tab("Attention")
    person.chips.last.click()
    person.wait_until(IS_CONSISTENT)
    expect(find_banner(person)).to_have_text("")
    expect(person.prompt).to_have_value("typed meanwhile")


@pytest.mark.exhaustive
def test_closing_page_stops_generation(open_unreliable_page, monkeypatch):
    times, generate = [], generation_actions.generate

    def slow_generate(*args, **kwargs):
        for step in generate(*args, **kwargs):
            time.sleep(TOKEN_DELAY_S)
            times.append(time.monotonic())
            yield step

    monkeypatch.setattr(generation_actions, "generate", slow_generate)
    person = open_unreliable_page(temperature=0, max_new_tokens=512)
    generate_tokens(person, 3)
    person.page.close()
    closed_at = time.monotonic()
    time.sleep(20 * TOKEN_DELAY_S)
    delays = [step_time - closed_at for step_time in times if step_time > closed_at]
    assert len(times) > 3 and len(delays) <= 10, delays  # within a second, even on a busy machine
