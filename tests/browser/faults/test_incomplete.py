"""A page of which not all comes."""

import pytest
from playwright.sync_api import expect

from .lost import ONE_MOMENT, banner, write

MODULE, PLOTLY, STYLE = "widgets/figure/figure.js", "*explorer-*/plotly.js", "assets/*.css"
ANSWERS = "gradio_api/app_id"


def fail(person, part: str, times: int = 1) -> list[str]:
    """The first requests of a part fail. All of them, as they come."""
    asked = []

    def answer(route):
        asked.append(route.request.url)
        if len(asked) > times:
            return route.fallback()
        return route.abort() if len(asked) % 2 else route.fulfill(status=503, body="no")

    person.page.route(f"**/{part}", answer)
    return asked


def line(person):
    return person.page.get_by_role("alert").and_(person.page.locator("#incomplete"))


@pytest.mark.parametrize("part", [MODULE, STYLE])
def test_comes_anew_where_a_script_or_a_style_did_not(somebody, part):
    person = somebody()
    fail(person, part)
    person.page.reload()
    person.wait_until(
        f"sessionStorage['explorer:incomplete'] && {ONE_MOMENT} && !document.querySelector('#incomplete')"
    )
    assert person.evaluate("JSON.parse(sessionStorage['explorer:incomplete']).count") == 1


def test_says_so_and_waits_for_the_server(somebody):
    person = somebody(lang="zh-CN")
    answers = fail(person, ANSWERS, 2)
    fail(person, PLOTLY)
    person.page.reload()
    expect(line(person)).to_contain_text("本页面尚未完整")
    assert len(answers) <= 2
    person.wait_until("document.querySelector('#attention-pattern .plot')?.dataset.draws")
    assert len(answers) > 2


def test_that_writing_was_interrupted_is_told_by_the_page_that_is_complete(somebody):
    person = somebody(temperature=0, max_new_tokens=512)
    write(person, 3)
    fail(person, PLOTLY)
    person.page.reload()
    person.wait_until(ONE_MOMENT)
    assert line(person).count() == 0
    expect(banner(person)).to_have_text("Writing was interrupted: press Generate to go on.")
