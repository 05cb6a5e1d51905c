"""Fixtures: the app and a browser, started once; users with a page each, whose console errors fail the test."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Playwright, expect, sync_playwright

from explorer.state.generation_settings import GenerationSettings
from explorer.tracing.model_catalog import ANY_NAME
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.actions.page_actions import FIRST_PROMPT
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.page import Page
from model.checkpoint import load_checkpoint
from model.pretrained.export_hugging_face import save_hugging_face
from tests.hub import Hub, serve_hub, use_hub
from tests.sample_models import STORIES

from . import chromium
from .checkpoints import write_checkpoints
from .chromium import FLAGS
from .person import Person

DESK = {"width": 1440, "height": 900}
TIMEOUT_MS = 40_000  # generous, because CI machines may be busy
BROWSER_ARGS = (*FLAGS, "--process-per-site")  # pages share compiled scripts, which halves the time to open one
ABORT_MESSAGES = ("AbortError: signal is aborted without reason", "Unexpected error Connection errored out.")
# Gradio's loading timer keeps running after it is hidden, at every frame: a tenth of a core per open page.
SLOW_LOADING_TIMER = """{
  const draw = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (step) =>
    String(step).includes("performance.now()-") ? setTimeout(() => draw(step), 1000) : draw(step);
}"""
LOG_ERROR_TOASTS = """new MutationObserver(() => {
  for (const toast of document.querySelectorAll(".toast-body.error:not([data-told])")) {
    toast.dataset.told = true;
    console.error("toast: " + toast.textContent);
  }
}).observe(document, { childList: true, subtree: true });"""


FAILED = pytest.StashKey[bool]()
# What everybody does in the page; all other browser tests are slow ones.
QUICK_FILES = (
    *("test_depth.py", "test_first_page.py", "test_generation.py", "test_hostile_text.py", "test_selection.py"),
    *("test_settings.py", "test_simple_page.py", "test_url.py", "test_whole_model.py"),
)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]):
    """Mark slow browser tests; rerun a failed one once if `CI` is set (busy machines); pytest lists the reruns."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            if item.path.name not in QUICK_FILES:
                item.add_marker(pytest.mark.slow)
            if os.environ.get("CI"):
                item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    report = yield
    item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="package")
def checkpoints(tmp_path_factory, tiny_tokenizer):
    """Folder of the tests' models, in place of `checkpoints/`."""
    folder = tmp_path_factory.mktemp("checkpoints")
    write_checkpoints(folder, tiny_tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.checkpoint.CHECKPOINTS", folder)
        yield folder


@pytest.fixture(scope="package")
def hub(tmp_path_factory) -> Iterator[Hub]:
    """Hub with a model that is not downloaded yet, and one that needs a licence."""
    hub, folder = Hub(), tmp_path_factory.mktemp("hub")
    save_hugging_face(*load_checkpoint(STORIES), folder / "stories")
    hub.models = {"somebody/stories": folder / "stories", "somebody/gated": folder / "stories"}
    hub.gated.add("somebody/gated")
    with pytest.MonkeyPatch.context() as patch, serve_hub(hub) as its_address:
        use_hub(patch, its_address, folder / "cache")
        yield hub


@pytest.fixture(scope="package")
def library(checkpoints, hub) -> ModelLibrary:
    """ModelLibrary with the tests' models, and one more opened from a folder."""
    library = ModelLibrary("cpu", hub_names=ANY_NAME)
    library.catalog.open(STORIES)
    return library


@pytest.fixture(scope="package")
def address(library):
    """URL of the app."""
    blocks = Page(library, "tiny").launch(prevent_thread_lock=True, quiet=True)
    blocks._queue.sleep_when_free = 0.02  # default 0.001 s: polling the queue would keep a tenth of a core busy
    yield blocks.local_url
    blocks.close(verbose=False)


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def profile(playwright, address, tmp_path_factory) -> Iterator[BrowserContext]:
    """Browser profile shared by all pages.

    The browser caches the compiled scripts of the page in it, which is half of the time that the page takes to
    open; it stays in memory as long as there is a page. Nothing else stays between tests.
    """
    context = playwright.chromium.launch_persistent_context(
        tmp_path_factory.mktemp("profile"), executable_path=find_executable(playwright), args=BROWSER_ARGS
    )
    context.pages[0].goto(f"{address}theme.css")  # stays open to the end, which keeps the site's renderer alive
    yield context
    context.close()


def find_executable(playwright: Playwright) -> str:
    """Return the path of the browser; skip the test if there is none."""
    try:
        return chromium.find_executable(playwright)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def touchscreen(playwright) -> Iterator[BrowserContext]:
    """Browser profile of a device with a touchscreen."""
    browser = playwright.chromium.launch(executable_path=find_executable(playwright), args=BROWSER_ARGS)
    yield browser.new_context(has_touch=True)
    browser.close()


@pytest.fixture
def open_figures(request) -> str:
    """Return which figures a page opens with: all in exhaustive tests, otherwise only visible ones (saves time)."""
    return "all" if request.node.get_closest_marker("exhaustive") else ""


def make_person(profile: BrowserContext, address: str, unfolded="", viewport=DESK, **media) -> Person:
    """Open a new blank page and return its `Person`, who records console errors and failed requests."""
    profile.set_offline(False)  # a failed test may have left the profile offline
    page = profile.new_page()
    page.set_viewport_size(viewport)
    page.emulate_media(**media)
    page.add_init_script(LOG_ERROR_TOASTS)
    page.add_init_script(SLOW_LOADING_TIMER)
    page.set_default_timeout(TIMEOUT_MS)
    page.wait_for_function = partial(page.wait_for_function, polling=50)  # not at every frame
    person = Person(page, address, unfolded)
    complaints = person.complaints
    page.on(
        "console",
        lambda message: is_complaint(message) and complaints.append(f"{message.text} {message.location}"),
    )
    page.on("pageerror", lambda error: complaints.append(error.stack))
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: is_local_url(request.url) or complaints.append(f"asks {request.url}"))
    return person


def close_page(person: Person):
    if not person.page.is_closed():
        if is_local_url(person.page.url):
            person.page.evaluate("localStorage.clear()")
            person.page.context.clear_cookies()
        person.page.close()


@pytest.fixture(scope="package")
def idle_pages(profile, address) -> Iterator[list[Person]]:
    """List with the `Person` whose page is kept open for the next test; empty if no page is open."""
    people = []
    yield people
    for person in people:
        close_page(person)


@pytest.fixture
def open_new_page(profile, address, open_figures) -> Iterator[Callable[..., Person]]:
    """Function that opens a new page and returns its `Person`.

    Fails at the end of the test if a page logged an error.
    """
    people = []

    def arrive(address=address, viewport=DESK, profile=profile, **media) -> Person:
        people.append(make_person(profile, address, open_figures, viewport, **media))
        return people[-1]

    yield arrive
    for person in people:
        close_page(person)
    assert [complaint for person in people for complaint in person.complaints] == []


@pytest.fixture(scope="package")
def state_builder(library) -> PageStateBuilder:
    """Factory of runs and page states from URLs."""
    return PageStateBuilder(RunService(library))


@pytest.fixture
def open_page(request, idle_pages, profile, address, state_builder, open_figures) -> Iterator[Callable[..., Person]]:
    """Function that brings an open page to the state of a URL (as `Person.open` does) and returns its `Person`.

    Reuses the page of earlier tests, which is faster than opening a new one. For tests that change
    nothing but the state; others use `open_new_page`. The page of a failed test is closed.
    """
    visitors = []

    def visit(view: str = "attention", viewport=DESK, **query) -> Person:
        person = idle_pages.pop() if idle_pages else make_person(profile, address).open()
        visitors.append(person)
        person.page.set_viewport_size(viewport)
        fields = {name: str(value) for name, value in query.items()}
        initial = {"checkpoint": "tiny", "text": FIRST_PROMPT, "view": view, "unfolded": open_figures}
        page_state = state_builder.state_from_query(initial | fields)
        return person.restore_state(page_state.as_dict() | GenerationSettings.parse(fields).as_dict())

    yield visit
    for person in visitors:
        if request.node.stash[FAILED] or person.complaints:
            close_page(person)
        else:
            person.page.unroute_all()
            person.page.evaluate("localStorage.clear()")
            idle_pages.append(person)
    assert [complaint for person in visitors for complaint in person.complaints] == []


@pytest.fixture
def person(open_page) -> Person:
    """Person at the page in its initial state."""
    return open_page()


def is_complaint(message) -> bool:
    """Return whether a console message is an error or a warning of our own page.

    Gradio 6.31 answers 500 if a cancelled generation ends during the cancellation; it is cancelled nevertheless.
    It also logs the stream that it aborts itself when a page is closed. On a busy machine Chromium warns that a
    preloaded file was not used within seconds; `test_requests` checks that it is fetched once.
    """
    from_gradio = message.location["url"].endswith("/gradio_api/cancel") or (
        "/assets/" in message.location["url"] and message.text.strip().startswith(ABORT_MESSAGES)
    )
    is_late = "was preloaded using link preload but not used within" in message.text
    return message.type in ("error", "warning") and not from_gradio and not is_late


def is_local_url(url: str) -> bool:
    """Return whether a URL needs no network."""
    return url.startswith(("http://127.0.0.1:", "http://localhost:", "data:", "blob:"))
