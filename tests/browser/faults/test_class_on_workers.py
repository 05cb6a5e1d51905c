"""A class whose teacher and student have pages of two worker processes, one of which dies."""

import os
import signal
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.benchmarks.classroom import process_tree

from ..conftest import ARGUMENTS, executable, new_person
from .lost import SERVE, run_two_workers

SHARING = SERVE.replace('Page(Library("cpu"), "tiny")', 'Page(Library("cpu"), "tiny", shared=sys.argv[2])')


@pytest.fixture
def sharing(checkpoints, tmp_path):
    """Two workers, which share a file."""
    with run_two_workers(SHARING, checkpoints, f"file:{tmp_path}/kept.db") as server:
        yield server


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the processes below another in /proc")
def test_a_student_follows_from_another_worker_and_after_that_one_died(sharing, playwright):
    browser = playwright.chromium.launch(executable_path=executable(playwright), args=ARGUMENTS)
    teacher, student = (new_person(browser.new_context(), f"{sharing.address}/w{number}/") for number in (0, 1))
    teacher.open()
    teacher.page.get_by_role("button", name="Class", exact=True).click()
    teacher.page.get_by_role("button", name="Open a room").click()
    link = teacher.page.locator("#room .link")
    expect(link).not_to_be_empty()
    href = link.get_attribute("href")
    assert href.startswith(f"{sharing.address}/?room=")  # whoever opens it is led to the worker with least to do
    student.page.goto(href.replace("/?", "/w1/?"))
    student.wait_until("page.state.view === 'attention'")
    teacher.chips.nth(2).click()
    student.wait_until("page.state.query === 2")
    expect(teacher.page.locator("#room .people")).to_have_text("1 student is there")
    name = student.page.evaluate("sessionStorage.getItem('explorer:room')")
    _front, _first, second = sorted(process_tree(sharing.process.pid))
    os.kill(second, signal.SIGKILL)
    teacher.chips.nth(1).click()
    student.wait_until("page.state.query === 1")
    expect(student.page.locator("#room-line")).to_contain_text("you follow the teacher")
    assert student.page.evaluate("sessionStorage.getItem('explorer:room')") == name  # who counts as they did before
    expect(teacher.page.locator("#room .people")).to_have_text("1 student is there")
    browser.close()
