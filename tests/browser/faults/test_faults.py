"""Faults of a server, or on the way to it, while a user looks at the page and generates text."""

import re
import time

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from explorer.web.actions import generation_actions

from .lost import IS_CONSISTENT, banner, generate_tokens

A_TOKEN = 0.1  # seconds
CONDITIONS = "Network.emulateNetworkConditions"
SLOW = {"offline": False, "latency": 400, "downloadThroughput": 200_000, "uploadThroughput": 200_000}  # bytes a second


def test_a_server_without_memory_says_so_and_answers_the_next_question(somebody, monkeypatch):
    person = somebody(text="A question that nobody asked before")  # or else its answer is kept
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
def test_over_a_slow_line_all_comes_in_its_time_and_nothing_is_lost(somebody):
    person = somebody(temperature=0, max_new_tokens=30)
    line = person.page.context.new_cdp_session(person.page)
    line.send(CONDITIONS, SLOW)
    generate_tokens(person, 3)
    person.prompt.fill("typed meanwhile")
    person.chips.nth(2).click()
    person.tab("Residual stream")
    person.wait_until("page.state.generated.length === 30")
    expect(person.chips).to_have_count(len(person.state["prompt"]) + 30)  # the strip comes with the last answer
    expect(banner(person)).to_have_text("")
    person.tab("Attention")
    person.chips.last.click()
    person.wait_until(IS_CONSISTENT)
    expect(banner(person)).to_have_text("")
    expect(person.prompt).to_have_value("typed meanwhile")


@pytest.mark.exhaustive
def test_of_a_page_that_is_closed_nothing_more_is_written(somebody, monkeypatch):
    times, generate = [], generation_actions.generate

    def slow_generate(*args, **kwargs):
        for step in generate(*args, **kwargs):
            time.sleep(A_TOKEN)
            times.append(time.monotonic())
            yield step

    monkeypatch.setattr(generation_actions, "generate", slow_generate)
    person = somebody(temperature=0, max_new_tokens=512)
    generate_tokens(person, 3)
    person.page.close()
    closed_at = time.monotonic()
    time.sleep(20 * A_TOKEN)
    delays = [step_time - closed_at for step_time in times if step_time > closed_at]
    assert len(times) > 3 and len(delays) <= 10, delays  # within a second, also where the machine is busy
