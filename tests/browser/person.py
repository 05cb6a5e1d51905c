"""A user at the page: locators, actions and expectations."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import Locator, Page, TimeoutError, expect

from explorer.web.shared_constants import url_field_defaults

CELL = """(plot, [x, y]) => {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.c2p(x), box.top + yaxis._offset + yaxis.c2p(y)];
}"""


RESTORE_STATE = """(state) => {
  document.activeElement.blur();
  scrollTo(0, 0);
  sessionStorage.clear();
  if (document.body.classList.contains("dark")) window.modules.dom.toggleTheme();
  const switches = ":is([data-shows=stages], [data-shows=more])"; // see OPEN_SWITCHES
  for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
  const open = `.toast-close, #notices .notice button, :is(.fold, .rest)[aria-expanded=true]:not(${switches})`;
  for (const button of document.querySelectorAll(`${open}, ${switches}[aria-expanded=false]`)) button.click();
  localStorage.clear();
  dispatchEvent(new PopStateEvent("popstate", { state: { run: Date.now(), own: {}, state } }));
  const { continuationsByModel: own } = window.modules.history; // continuations of other models
  for (const model of Object.keys(own)) delete own[model];
}"""
# All columns of the next token's table and all settings, for tests that do not test folding.
OPEN_SWITCHES = """for (const part of ["stages", "more"])
  if (localStorage.getItem(`explorer-${part}`) === null) localStorage.setItem(`explorer-${part}`, "true");"""
HAS_STATE = "Object.keys(given).every((name) => name === 'turn' || String(page.state[name]) === String(given[name]))"
IS_IN_URL = """(fields) => {
  const query = new URLSearchParams(location.search);
  return Object.keys(fields).every((name) => query.get(name) === fields[name]);
}"""
DEFAULTS = {name: str(value) for name, value in url_field_defaults().items()}  # which the URL omits
ANSWER = "**/explorer/answer"  # URL of the page's requests to Python
AT_REST = "document.querySelector('#view')?.getAttribute('aria-busy') === 'false'"
HAS_RUN = "page.state.turn > given && document.querySelectorAll('#strip .chip').length === page.state.prompt.length"
# Loads the page's modules for expressions. They must be no async functions: `wait_for_function` takes their
# promise for a value, which is truthy.
LOAD_MODULES = """async function load() {
  const names = ["page", "page_actions", "widget_contents", "dom", "page_state", "history"];
  const links = names.map((name) => document.querySelector(`link[rel=modulepreload][href$="/static/${name}.js"]`));
  if (links.includes(null)) return setTimeout(load, 20);
  const modules = await Promise.all(links.map(({ href }) => import(href)));
  window.modules = Object.fromEntries(names.map((name, i) => [name, modules[i]]));
}"""
# Value of an expression that may use the modules by name; false until the page has loaded them.
WITH_MODULES = """(given) => {
  if (!window.modules) return false;
  const { page, page_actions: actions, widget_contents: contents, page_state: { onState } } = window.modules;
  return (%s);
}"""
IS_DARK = "document.body.classList.contains('dark')"
# Playwright itself waits for a promise without a timeout.
WITH_TIMEOUT = """(given) => Promise.race([
  (%s)(given),
  new Promise((_, fail) => { setTimeout(() => fail(new Error("a promise was not kept for a minute")), 60_000); }),
])"""


class Person:
    """A user at a page. Every method waits for conditions in the page, never for a fixed time."""

    def __init__(self, page: Page, address: str, unfolded: str = ""):
        self.page, self.address, self.unfolded = page, address, unfolded
        self.beginning = None  # the state that the page opened with
        self.complaints: list[str] = []  # of the page
        page.add_init_script(f"addEventListener('load', {LOAD_MODULES})")
        self.prompt = page.locator("#prompt textarea")
        self.strip = page.locator("#strip .strip")
        self.chips = self.strip.locator(".chip")
        self.story = page.locator("#story .story")
        self.branches = page.locator("#branches .stretch")
        self.playback = page.locator("#playback")
        self.grid = page.locator("#attention-heads .grid")
        self.pattern = page.locator("#attention-pattern .plot")
        self.prediction = page.locator("#next-token .distribution")
        self.draw = page.locator("#next-token-more")  # the random number line of the next token, and the token search
        self.picker = page.locator("#picker select")
        self.warning = page.locator("#notices .notice")

    def open(self, view: str = "attention", **query) -> "Person":
        """Open the page with all columns and settings of the next token, and wait for the first figures.

        `view` "" opens it as a first-time user sees it.
        """
        if view:
            query = {"view": view, "unfolded": self.unfolded} | query
            self.page.add_init_script(OPEN_SWITCHES)
        self.page.goto(f"{self.address}?{urlencode(query)}")
        for drawing in (self.prediction, self.pattern) if view == "attention" else (self.prediction,):
            expect(drawing).to_have_attribute("data-draws", re.compile(r"\d"))
        return self

    def restore_state(self, state: dict[str, Any]) -> "Person":
        """Put the page into a state, as if it had opened with it, through the browser's Back."""
        self.wait_until_idle()
        if self.beginning is None:
            self.beginning = self.state
        self.page.mouse.move(0, 0)
        self.page.wait_for_function("window.modules")
        state = {**self.beginning, **state}
        self.page.evaluate(RESTORE_STATE, state)
        self.wait_until(HAS_STATE, state)
        expect(self.wait_until_idle().page.locator(".stale:visible")).to_have_count(0)
        return self

    def wait_until_idle(self) -> "Person":
        """Wait until every answer from Python has arrived."""
        self.page.wait_for_function(AT_REST)
        return self

    def wait_for_terms(self):
        """Wait until every glossary term on the page is marked."""
        expect(self.page.locator("#definition")).not_to_have_attribute("data-behind", "true")

    def run(self, text: str):
        """Type a prompt and press Enter; wait until the strip has its tokens."""
        before = self.evaluate("page.state.turn ?? -1")
        self.prompt.fill(text)
        with self.wait_for_redraw(self.strip, self.prediction):
            self.prompt.press("Enter")
        self.wait_until(HAS_RUN, before)  # the last redraw may belong to an earlier request

    def generate(self, tokens: int):
        """Press Generate; wait until `tokens` more tokens are generated and the tree of continuations shows them."""
        self.set_length(tokens)
        with self.wait_for_new_tree():
            self.page.locator("#generate").click()

    @contextmanager
    def wait_for_new_tree(self):
        """Wait, at the end of the block, for a new drawing of the tree, which follows a complete text."""
        with self.wait_for_redraw(self.page.locator("#branches .tree")):
            yield

    def tab(self, title: str) -> None:
        """Open a view by its tab or from a menu of views."""
        item = self.page.locator(".view-menu button", has_text=title)
        if not item.count():
            return self.page.get_by_role("tab", name=title).first.click()
        item.locator("xpath=ancestor::details").locator("summary").click()
        item.click()

    def unfold(self, fold: str):
        """Open controls that are folded on a phone; a wide screen shows them anyway."""
        button = self.page.locator(f"#{fold} .fold")
        if button.is_visible() and button.get_attribute("aria-expanded") == "false":
            button.click()

    def unfold_changes(self):
        """Open the current tab's intervention controls."""
        button = self.page.locator("[id$=-what-ifs] .fold:visible")
        if button.get_attribute("aria-expanded") == "false":
            button.click()
        for more in self.page.locator(".more-changes[aria-expanded=false]:visible").all():
            more.click()

    def copy(self, entry: str):
        """Choose an entry of the copy menu."""
        self.page.locator("#copy summary").click()
        self.page.locator("#copy").get_by_role("button", name=entry).click()

    def change_theme(self):
        self.unfold("more-of-header")
        is_dark = self.page.evaluate(IS_DARK)
        self.open_menu("#page-menu").get_by_role("button", name="Light / dark").click()
        self.page.wait_for_function(f"was => {IS_DARK} !== was", arg=is_dark)  # before a reload, if one follows

    def visit(self, name: str, title: str):
        """Open a tab, and wait until all of it is drawn."""
        self.tab(title)
        self.expect_selected(view=name)
        expect(self.wait_until_idle().page.locator(".stale:visible")).to_have_count(0)

    def chooser(self, field: str) -> Locator:
        """Return the current tab's visible list that sets a field of the selection."""
        expect(self.wait_until_idle().page.locator("[data-field]:visible").first).to_be_visible()
        chooser = self.page.locator(f"select[data-field={field}]:visible")
        if not chooser.count() and (others := self.page.locator(".rest[aria-expanded=false]:visible")).count():
            others.click()
        return chooser

    def open_menu(self, menu: str) -> Locator:
        """Open a menu by its selector, and return it."""
        if not self.page.locator(f"{menu}[open]").count():
            self.page.locator(f"{menu} > summary").click()
        return self.page.locator(menu)

    def slider(self, name: str) -> Locator:
        return self.page.get_by_role("slider", name=name)

    def set(self, name: str, value: float):
        """Type a value into a slider's box."""
        self.set_number(f"number input for {name}", value)

    def set_number(self, label: str, value: float | str):
        """Type a value into a box, opening its settings first; wait until the page's state has it."""
        box = self.page.get_by_label(label)
        if not box.is_visible():
            self.page.locator("[data-shows=more]").click()
        box.fill(str(value))
        box.blur()

    def set_length(self, tokens: int):
        """Type the number of tokens that Generate adds."""
        box = self.page.locator("#max_new_tokens input")
        box.fill(str(tokens))
        box.blur()

    def choose_model(self, checkpoint: str):
        self.picker.select_option(checkpoint)

    @contextmanager
    def wait_for_redraw(self, *drawings: Locator):
        """Wait, at the end of the block, until every drawing was drawn again."""
        before = [count_draws(drawing) for drawing in drawings]
        yield
        for drawing, count in zip(drawings, before, strict=True):
            expect(drawing).not_to_have_attribute("data-draws", str(count))

    def click_cell(self, plot: Locator, x: int, y: int):
        """Click the cell of a heatmap at column x and row y."""
        plot.scroll_into_view_if_needed()
        self.page.mouse.click(*plot.evaluate(CELL, [x, y]))

    def expect_selected(self, **fields):
        """Expect the state and, in time, the URL to have these values."""
        texts = {name: str(value) for name, value in fields.items()}
        expected = {name: text if text and text != DEFAULTS.get(name) else None for name, text in texts.items()}
        with suppress(TimeoutError):  # the assertion below then shows the actual values
            self.page.wait_for_function(IS_IN_URL, arg=expected)
        assert {name: self.url.get(name) for name in fields} == expected
        state = self.state
        assert {name: state[name] for name in fields} == fields

    def evaluate(self, expression: str, arg: Any = None) -> Any:
        """Return the value of a JavaScript expression that may use the page's modules (`WITH_MODULES`).

        A promise is awaited.
        """
        self.page.wait_for_function("window.modules")
        return self.page.evaluate(WITH_TIMEOUT % (WITH_MODULES % expression), arg)

    def wait_until(self, expression: str, arg: Any = None):
        """Wait until a JavaScript expression, as in `evaluate`, is true."""
        try:
            self.page.wait_for_function(WITH_MODULES % expression, arg=arg)
        except TimeoutError as late:
            late.add_note(f"{self.page.url} has {self.page.evaluate('window.modules?.page.state')}")
            raise

    @property
    def state(self) -> dict[str, Any]:
        return self.evaluate("page.state")

    @property
    def background(self) -> str:
        """Background colour of the page."""
        return self.page.evaluate("getComputedStyle(document.querySelector('gradio-app')).backgroundColor")

    @property
    def url(self) -> dict[str, str]:
        return {
            name: values[0] for name, values in parse_qs(urlsplit(self.page.url).query, keep_blank_values=True).items()
        }


def count_draws(drawing: Locator) -> int:
    return int(drawing.get_attribute("data-draws") or 0)


@contextmanager
def collect_posts(person: Person) -> Iterator[list[str]]:
    """Collect the paths of the POST requests that the page sends in the block, until all are answered."""
    paths: list[str] = []

    def note(request):
        if request.method == "POST":
            paths.append(urlsplit(request.url).path)

    person.page.on("request", note)
    yield paths
    person.wait_until_idle()
    person.page.remove_listener("request", note)
