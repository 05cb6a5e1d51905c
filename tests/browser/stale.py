"""Going about a page, and comparing what it says with a page that is opened at its address."""

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
NOT_SAID = ", ".join(
    (
        "script, style, .modebar, .js-plotly-tester, .plotly-notifier",  # no part of the page
        "footer",  # Gradio's
        ".toast-wrap",  # tells of an event, and goes by itself
        "#connection, #place",  # of the connection, and of who waits
        "#definition, #next-token .note",  # of what is pointed at
        ".inspection",  # of what was clicked: gone at the next change (evidence.js)
        ".words-here",  # under which of several pictures a term is told that several have
        "#guess output",  # of what was drawn, as long as the prompt is the same
        ".falls",  # what the settings before drew, as long as the place is the same
        ".only-here, .tools label",  # a mode of the controls beside it, and of the bars
        "#more-settings > button",  # whether it is open
        ".fold, #runs .ways",  # what is folded open, and a form for the other prompt
    )
)
ASIDE = ("/heartbeat", "/people_before")  # requests that no answer waits for
NOT_PRESSED = ", ".join(
    (
        NOT_SAID,
        "#lessons, #present, #room, #language, #open-model",  # lead elsewhere
        "#header button.sm, #open-file",  # a clipboard, a file, a theme
        ".skip",  # a link within the page
        "#guess .again",  # covers what is guessed
        "[id$=-walk]",  # covers the page
        "[id$=-tab-button], .overflow-menu",  # tabs, which the test opens itself
    )
)
QUIET = f"""() => window.modules && {AT_REST} && document.querySelector("#next-token [data-draws]")
  && ![...document.querySelectorAll("[data-old-since]")].some((one) => one.checkVisibility())
  && document.querySelector("#definition")?.dataset.behind !== "true" && !document.querySelector(".job progress")
  && document.querySelector("#stop")?.disabled !== false"""


@dataclass(frozen=True)
class Difference:
    """What a page says after some steps, and what a page says that is opened at its address."""

    steps: tuple[str, ...]
    address: str
    here: list[str]
    fresh: list[str]

    def __str__(self):
        lines = [*(f"  - {line:.300}" for line in self.here), *(f"  + {line:.300}" for line in self.fresh)]
        return "\n".join([f"after {' | '.join(self.steps[-5:])}", f"  {self.address}", *lines])


@dataclass
class Walk:
    """Somebody goes about a page, and a second page is brought to each address that the first comes to, as Back would.
    Where the two differ a third is opened there, which says whether the first is wrong.

    Attributes:
        restored: the state that the query of an address opens with.
        pairs: controls that were used one after the other.
    """

    here: Person
    there: Person
    fresh: Person
    restored: Callable[[dict[str, str]], dict[str, Any]]
    chance: random.Random
    steps: list[str] = field(default_factory=list)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    compared: int = 0

    def __post_init__(self):
        for person in (self.here, self.there, self.fresh):
            prepare(person.page)

    def controls(self, most: int = 2) -> list[str]:
        return self.here.page.evaluate("args => window.stale.controls(...args)", [NOT_PRESSED, most])

    def use(self, control: str) -> bool:
        """Use a control of the page; whether there was something to do."""
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
        """What the page says otherwise than one that is opened at its address."""
        self.compared += 1
        rest(self.here.page)
        self.here.page.evaluate("window.modules.history.writeAddress()")
        address = self.here.page.url
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        self.there.begin_again(self.restored(query))
        if read(self.here.page) == read(self.there.page):
            return None
        self.fresh.page.goto(address)
        prepare(self.fresh.page)
        here, fresh = apart(read_at_rest(self.here.page), read_at_rest(self.fresh.page))
        return Difference(tuple(self.steps), address, here, fresh) if here or fresh else None


def prepare(page: Page):
    """Have a page be read, with what is seldom wanted in sight."""
    page.wait_for_function(QUIET)
    if not hasattr(page, "under_way"):
        watch(page)
    page.evaluate(SCRIPT.read_text("utf-8"))
    if not page.locator("#more-settings input").first.is_visible() and page.locator("#more-settings").is_visible():
        page.locator("#more-settings button").first.click()
    rest(page)


def watch(page: Page):
    """Have the page tell which requests are under way, those of Gradio's own events among them."""
    page.under_way = set()
    page.on("request", lambda request: any(one in request.url for one in ASIDE) or page.under_way.add(request))
    for ended in ("requestfinished", "requestfailed"):
        page.on(ended, lambda request: page.under_way.discard(request))


def rest(page: Page):
    """Once all that was asked is answered and drawn."""
    end = time.monotonic() + 20
    quiet = 0
    while quiet < 2 and time.monotonic() < end:
        page.wait_for_timeout(60)  # in which what was done asks
        page.wait_for_function(QUIET)
        quiet = 0 if page.under_way else quiet + 1


def read(page: Page) -> list[str]:
    return page.evaluate("skipped => window.stale.read(skipped)", NOT_SAID)


def read_at_rest(page: Page) -> list[str]:
    """What a page says once it no longer says anything else."""
    before, end = None, time.monotonic() + 6
    while (now := read(page)) != before and time.monotonic() < end:
        before = now
        page.wait_for_timeout(150)
    return now


def apart(here: list[str], there: list[str]) -> tuple[list[str], list[str]]:
    """The lines that the one has and the other has not, of each."""
    changes = difflib.SequenceMatcher(a=here, b=there, autojunk=False).get_opcodes()
    lines = [(here[a:b], there[c:d]) for kind, a, b, c, d in changes if kind != "equal"]
    return [line for mine, _ in lines for line in mine], [line for _, theirs in lines for line in theirs]
