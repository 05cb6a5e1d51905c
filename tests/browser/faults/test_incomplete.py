"""A page of which not all comes."""

import pytest
from playwright.sync_api import expect

from .lost import ONE_MOMENT, banner, write

OURS = ["static/page.js", "widgets/figure/figure.js", "*explorer-*/plotly.js"]
GRADIOS = ["assets/Blocks-*.js", "assets/*.css"]


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


@pytest.mark.parametrize("part", [*OURS, *GRADIOS])
def test_comes_anew_where_a_script_or_a_style_did_not(somebody, part):
    person, came = somebody(), []
    fail(person, part)
    person.page.on("domcontentloaded", lambda page: came.append(page))
    person.page.reload()
    person.wait_until(f"{ONE_MOMENT} && !document.querySelector('#incomplete')")
    assert len(came) == 2


@pytest.mark.parametrize(("language", "said"), [("en", "Not all of this page has come"), ("zh-CN", "本页面")])
def test_says_so_and_waits_for_the_server(somebody, language, said):
    person = somebody(lang=language)
    answers = fail(person, ANSWERS, 2)
    fail(person, OURS[-1])
    person.page.reload()
    expect(line(person)).to_contain_text(said)
    assert len(answers) <= 2
    person.wait_until("document.querySelector('#attention-pattern .plot')?.dataset.draws")
    assert len(answers) > 2


@pytest.mark.exhaustive
def test_what_never_comes_is_named_and_no_longer_asked_for(somebody):
    person = somebody()
    asked = fail(person, OURS[-1], times=1000)
    person.page.reload()
    expect(line(person)).to_contain_text("This page lacks plotly.js, which does not come: load it again")
    tries = len(asked)
    person.page.wait_for_timeout(3000)
    assert len(asked) == tries == 5
    expect(person.story).to_be_visible()


def test_a_script_of_others_may_fail(somebody):
    person = somebody()
    person.page.route("http://elsewhere.example/**", lambda route: route.abort())
    lost = """new Promise((lost) => document.head.append(Object.assign(document.createElement("script"), {
        src: "http://elsewhere.example/script.js", onerror: lost })))"""
    person.page.evaluate(f"{lost}.then(() => true)")
    assert line(person).count() == 0


def test_that_writing_was_interrupted_is_told_by_the_page_that_is_complete(somebody):
    person = somebody(temperature=0, max_new_tokens=512)
    write(person, 3)
    fail(person, OURS[-1])
    person.page.reload()
    person.wait_until(ONE_MOMENT)
    assert line(person).count() == 0
    expect(banner(person)).to_have_text("Writing was interrupted: press Generate to go on.")
