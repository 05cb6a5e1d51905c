"""Random walk over a page's controls, comparing its texts with those of a page opened at its URL."""

import difflib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page

from .person import AT_REST, Person

SCRIPT = Path(__file__).with_suffix(".js")
# Content that no URL has, with the reason.
NOT_COMPARED = ", ".join(
    (
        "script, style, .modebar, .js-plotly-tester, .plotly-notifier",  # not part of the page
        "footer",  # Gradio's
        "#notices",  # a notice of an event, which disappears by itself
        "#connection, #place",  # the connection, and the queue
        "#definition, #next-token .note",  # what the pointer is at
        ".inspection",  # what was clicked: removed at the next change (widget_contents.js)
        ".words-here",  # which of several figures explains a term that several have
        "#guess output",  # the user's drawing, until the prompt changes
        "#undo",  # the last action
        ".falls",  # the draw of earlier settings, until the position changes
        ".only-here, .tools label",  # a mode of the controls next to it, and of the bars
        "[data-shows=more]",  # whether it is open
        ".fold, #runs .ways",  # open folds, and a form for the other prompt
    )
)
HEARTBEAT = "/heartbeat"  # of Gradio, not related to any answer
NOT_PRESSED = ", ".join(
    (
        NOT_COMPARED,
        "#lessons, #page-menu, #room, #open-model",  # navigate elsewhere
        "#header button.sm, #open-file",  # a clipboard, a file, a theme
        ".skip",  # a link within the page
        "#guess .again",  # hides the guess
        "[id$=-walk]",  # covers the page
        "[id$=-tab-button], .overflow-menu",  # tabs, which the test opens itself
    )
)
IS_QUIET = f"""() => window.modules && {AT_REST} && document.querySelector("#next-token [data-draws]")
  && ![...document.querySelectorAll("[data-old-since]")].some((one) => one.checkVisibility())
  && document.querySelector("#definition")?.dataset.behind !== "true" && !document.querySelector(".job progress")
  && document.querySelector("#stop")?.disabled !== false"""


@dataclass(frozen=True)
class Difference:
    """Texts of a page after some steps that differ from those of a page opened at its URL."""

    steps: tuple[str, ...]
    address: str
    here: list[str]
    fresh: list[str]

    def __str__(self):
        lines = [*(f"  - {line:.300}" for line in self.here), *(f"  + {line:.300}" for line in self.fresh)]
        return "\n".join([f"after {' | '.join(self.steps[-5:])}", f"  {self.address}", *lines])


@dataclass
class Walk:
    """Walk over the controls of a page, compared with a second page that is brought to each of its URLs through Back.

    If the two differ, a third page opened at the URL decides whether the first is wrong.

    Attributes:
        parse_query: returns the page state that a URL's query opens.
        pairs: pairs of controls used one after the other.
    """

    here: Person
    there: Person
    fresh: Person
    parse_query: Callable[[dict[str, str]], dict[str, Any]]
    chance: random.Random
    steps: list[str] = field(default_factory=list)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    compared: int = 0

    def __post_init__(self):
        for person in (self.here, self.there, self.fresh):
            prepare_page(person.page)

    def controls(self, limit: int = 2) -> list[str]:
        return self.here.page.evaluate("args => window.stale.controls(...args)", [NOT_PRESSED, limit])

    def use(self, control: str) -> bool:
        """Use a control of the page; return whether it could be used."""
        done = self.here.page.evaluate("args => window.stale.act(...args)", [control, self.chance.random()])
        if isinstance(done, list):
            self.here.page.mouse.click(*done)
            self.here.page.mouse.move(2, 2)
        elif not done:
            return False
        if self.steps:
            self.pairs.add((self.steps[-1].partition(" → ")[0], control))
        self.steps.append(f"{control} → {done}")
        return True

    def compare(self) -> Difference | None:
        """Return the difference between the page and a page opened at its URL, or None."""
        self.compared += 1
        wait_until_quiet(self.here.page)
        self.here.page.evaluate("window.modules.history.writeUrl()")
        address = self.here.page.url
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        self.there.restore_state(self.parse_query(query))
        if read_texts(self.here.page) == read_texts(self.there.page):
            return None
        self.fresh.page.goto(address)
        prepare_page(self.fresh.page)
        here, fresh = diff_lines(read_settled_texts(self.here.page), read_settled_texts(self.fresh.page))
        return Difference(tuple(self.steps), address, here, fresh) if here or fresh else None


def prepare_page(page: Page):
    """Load the script that reads the page, and open its further settings."""
    page.wait_for_function(IS_QUIET)
    if not hasattr(page, "under_way"):
        track_requests(page)
    page.evaluate(SCRIPT.read_text("utf-8"))
    if not page.locator("#more-settings input").first.is_visible() and page.locator("#more-settings").is_visible():
        page.locator("[data-shows=more]").click()
    wait_until_quiet(page)


def track_requests(page: Page):
    """Record the page's pending requests in `page.under_way`, including those of Gradio's own events."""
    page.under_way = set()
    page.on(
        "request",
        lambda request: HEARTBEAT in request.url or page.under_way.add(request),
    )
    for ended in ("requestfinished", "requestfailed"):
        page.on(ended, lambda request: page.under_way.discard(request))


def wait_until_quiet(page: Page):
    """Wait until every request is answered and drawn."""
    end = time.monotonic() + 20
    quiet = 0
    while quiet < 2 and time.monotonic() < end:
        page.wait_for_timeout(60)  # time for the action to send its requests
        page.wait_for_function(IS_QUIET)
        quiet = 0 if page.under_way else quiet + 1


def read_texts(page: Page) -> list[str]:
    return page.evaluate("skipped => window.stale.read(skipped)", NOT_COMPARED)


def read_settled_texts(page: Page) -> list[str]:
    """Return the texts of a page once they no longer change."""
    before, end = None, time.monotonic() + 6
    while (now := read_texts(page)) != before and time.monotonic() < end:
        before = now
        page.wait_for_timeout(150)
    return now


def diff_lines(here: list[str], there: list[str]) -> tuple[list[str], list[str]]:
    """Return the lines that only the first has, and those that only the second has."""
    changes = difflib.SequenceMatcher(a=here, b=there, autojunk=False).get_opcodes()
    lines = [(here[a:b], there[c:d]) for kind, a, b, c, d in changes if kind != "equal"]
    return [line for lines_here, _ in lines for line in lines_here], [
        line for _, lines_there in lines for line in lines_there
    ]
