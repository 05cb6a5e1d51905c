"""Pages of two processes behind nginx, one of which is killed."""

import itertools
import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.deployment import AppProcess, Deployment

from ..conftest import BROWSER_ARGS, find_executable, make_person
from .servers import find_banner, generate_tokens


def find_serving_process(deployment: Deployment, person) -> AppProcess:
    """Return the process that a person's page came from."""
    app_id = float(person.page.evaluate("gradio_config.app_id"))
    (process,) = (
        process for process in deployment.processes if float(process.app_id) == app_id
    )  # parsed as JavaScript parses it
    return process


def make_affinity_cookie(deployment: Deployment, process: AppProcess) -> dict[str, str]:
    """Return a cookie that makes nginx route a browser to a process."""
    for number in itertools.count():
        answer = httpx.get(f"{deployment.address}/gradio_api/app_id", cookies={"explorer": str(number)})
        if answer.json()["app_id"] == process.app_id:
            return {"name": "explorer", "value": str(number), "url": deployment.address}


@pytest.mark.exhaustive
def test_pages_of_killed_process_move_to_other_process(open_unreliable_page, deployment):
    person = open_unreliable_page(f"{deployment.address}/", temperature=0, max_new_tokens=512)
    process = find_serving_process(deployment, person)
    person.tab("Residual stream")
    generate_tokens(person, 1)
    prompt = person.prompt.input_value()
    person.prompt.fill("typed <b>meanwhile</b>")
    generated = person.state["generated"]
    process.kill()
    expect(find_banner(person)).to_have_text("Writing was interrupted: press Generate to go on.")
    assert find_serving_process(deployment, person) is not process
    person.wait_until("page.state.view === 'residual' && page.state.generated?.length >= given", len(generated))
    assert person.state["generated"][: len(generated)] == generated
    expect(person.prompt).to_have_value("typed <b>meanwhile</b>")
    person.prompt.fill(prompt)  # else Generate would run the typed text first
    person.page.locator("#generate").click()
    person.wait_until("page.state.generated?.length > given", len(person.state["generated"]))
    person.page.get_by_role("button", name="Stop").click()
    assert person.state["generated"][: len(generated)] == generated
    expect(person.page.locator("#residual-norms .plot")).to_have_attribute("data-draws", re.compile(r"\d"))


@pytest.mark.exhaustive
def test_student_follows_from_other_process_after_kill(deployment, playwright):
    browser = playwright.chromium.launch(executable_path=find_executable(playwright), args=BROWSER_ARGS)
    people = []
    for process in deployment.processes:
        context = browser.new_context()
        context.add_cookies([make_affinity_cookie(deployment, process)])
        people.append(make_person(context, f"{deployment.address}/"))
    teacher, student = people
    teacher.open()
    teacher.page.get_by_role("button", name="Class", exact=True).click()
    teacher.page.get_by_role("button", name="Open a room").click()
    link = teacher.page.locator("#room .link")
    expect(link).not_to_be_empty()
    student.page.goto(link.get_attribute("href"))
    student.wait_until("page.state.view === 'attention'")
    assert [find_serving_process(deployment, person) for person in people] == deployment.processes
    teacher.chips.nth(2).click()
    student.wait_until("page.state.query === 2")
    expect(teacher.page.locator("#room .people")).to_have_text("1 student is there")
    name = student.page.evaluate("sessionStorage.getItem('explorer:room')")
    deployment.processes[1].kill()
    teacher.chips.nth(1).click()
    student.wait_until("page.state.query === 1")
    expect(student.page.locator("#room-line")).to_contain_text("you follow the teacher")
    assert student.page.evaluate("sessionStorage.getItem('explorer:room')") == name  # the same student is counted once
    expect(teacher.page.locator("#room .people")).to_have_text("1 student is there")
    browser.close()
