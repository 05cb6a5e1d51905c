"""Walk over a page's controls, comparing its texts with those of a page that is opened at its URL."""

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
# What no address has, each for a reason.
NOT_COMPARED = ", ".join(
    (
        "script, style, .modebar, .js-plotly-tester, .plotly-notifier",  # no part of the page
        "footer",  # Gradio's
        "#notices",  # tells of an event, and goes by itself
        "#connection, #place",  # of the connection, and of who waits
        "#definition, #next-token .note",  # of what is pointed at
        ".inspection",  # of what was clicked: gone at the next change (widget_contents.js)
        ".words-here",  # under which of several figures a term is told that several have
        "#guess output",  # of what was drawn, as long as the prompt is the same
        "#undo",  # of what was done before
        ".falls",  # what the settings before drew, as long as the place is the same
        ".only-here, .tools label",  # a mode of the controls beside it, and of the bars
        "[data-shows=more]",  # whether it is open
        ".fold, #runs .ways",  # what is folded open, and a form for the other prompt
    )
)
HEARTBEAT = "/heartbeat"  # of Gradio, which no answer waits for
NOT_PRESSED = ", ".join(
    (
        NOT_COMPARED,
        "#lessons, #page-menu, #room, #open-model",  # lead elsewhere
        "#header button.sm, #open-file",  # a clipboard, a file, a theme
        ".skip",  # a link within the page
        "#guess .again",  # covers what is guessed
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
    """Walk over the controls of a page, compared with a second page that is brought to each of its URLs, as Back would.

    If the two differ, a third page is opened at the URL, to decide whether the first is wrong.

    Attributes:
        parse_query: query of a URL -> the page state that it opens with.
        pairs: controls that were used one after the other.
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
        """Return the difference between the page and one that is opened at its URL; None if there is none."""
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
    """Record the page's pending requests in `page.under_way`, those of Gradio's own events among them."""
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
        page.wait_for_timeout(60)  # in which what was done asks
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
