"""Fixtures: the app and a browser, started once; people with a page each, who fail the test if the page complains."""

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
TIMEOUT_MS = 40_000  # milliseconds until a test gives up; for busy machines, as nothing takes long where all is well
ARGUMENTS = (*FLAGS, "--process-per-site")  # pages share compiled scripts, half of the time to open one
ABORTED = ("AbortError: signal is aborted without reason", "Unexpected error Connection errored out.")
# Gradio's loading tracker counts on after it is gone, at every frame: a tenth of a core for each open page.
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


def pytest_collection_modifyitems(items: list[pytest.Item]):
    """Rerun a failed browser test once if `CI` is set (busy machines); pytest lists the reruns."""
    if os.environ.get("CI"):
        for item in items:
            if Path(__file__).parent in item.path.parents:
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
    """Hub with a model that is not on this machine, and one that needs a licence."""
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
    blocks._queue.sleep_when_free = 0.02  # not 0.001 s: looking for questions would take a tenth of a core all the time
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
        tmp_path_factory.mktemp("profile"), executable_path=executable(playwright), args=ARGUMENTS
    )
    context.pages[0].goto(f"{address}theme.css")  # it stays to the end, and with it the process of this site's pages
    yield context
    context.close()


def executable(playwright: Playwright) -> str:
    """Return the path of the browser; skip the test if there is none."""
    try:
        return chromium.executable(playwright)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def touchscreen(playwright) -> Iterator[BrowserContext]:
    """Browser profile of a device with a touchscreen."""
    browser = playwright.chromium.launch(executable_path=executable(playwright), args=ARGUMENTS)
    yield browser.new_context(has_touch=True)
    browser.close()


@pytest.fixture
def open_figures(request) -> str:
    """Return which figures a page opens with: all in exhaustive tests; in others, to save time, those in sight."""
    return "all" if request.node.get_closest_marker("exhaustive") else ""


def new_person(profile: BrowserContext, address: str, unfolded="", viewport=DESK, **media) -> Person:
    """Open a new blank page and return its `Person`, who records the page's complaints."""
    profile.set_offline(False)  # which a test that failed may have left it
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
def kept_page(profile, address) -> Iterator[list[Person]]:
    """Person whose page `person` keeps open, in a list; empty if there is none."""
    people = []
    yield people
    for person in people:
        close_page(person)


@pytest.fixture
def newcomer(profile, address, open_figures) -> Iterator[Callable[..., Person]]:
    """Function that opens a new page and returns its `Person`.

    At the end of the test no page may have complained.
    """
    people = []

    def arrive(address=address, viewport=DESK, profile=profile, **media) -> Person:
        people.append(new_person(profile, address, open_figures, viewport, **media))
        return people[-1]

    yield arrive
    for person in people:
        close_page(person)
    assert [complaint for person in people for complaint in person.complaints] == []


@pytest.fixture(scope="package")
def opening(library) -> PageStateBuilder:
    """Factory of runs and page states from URLs."""
    return PageStateBuilder(RunService(library))


@pytest.fixture
def visitor(request, kept_page, profile, address, opening, open_figures) -> Iterator[Callable[..., Person]]:
    """Function that brings a page to the state of a URL (as `Person.open` does) and returns its `Person`.

    Reuses the page that other tests had open, which costs less than opening one. For tests that change
    nothing but the state; others use `newcomer`. The page of a failed test is closed.
    """
    visitors = []

    def visit(view: str = "attention", viewport=DESK, **query) -> Person:
        person = kept_page.pop() if kept_page else new_person(profile, address).open()
        visitors.append(person)
        person.page.set_viewport_size(viewport)
        fields = {name: str(value) for name, value in query.items()}
        initial = {"checkpoint": "tiny", "text": FIRST_PROMPT, "view": view, "unfolded": open_figures}
        page_state = opening.state_from_query(initial | fields)
        return person.restore_state(page_state.as_dict() | GenerationSettings.parse(fields).as_dict())

    yield visit
    for person in visitors:
        if request.node.stash[FAILED] or person.complaints:
            close_page(person)
        else:
            person.page.unroute_all()
            person.page.evaluate("localStorage.clear()")
            kept_page.append(person)
    assert [complaint for person in visitors for complaint in person.complaints] == []


@pytest.fixture
def person(visitor) -> Person:
    """Person at the page in its initial state."""
    return visitor()


def is_complaint(message) -> bool:
    """Return whether a console message is an error or a warning of our own page.

    Gradio 6.31 answers 500 if a cancelled generation ends while it is being cancelled; it is cancelled all the same.
    When its page is left, it also logs the stream that it aborts itself. On a busy machine Chromium warns that what is
    preloaded was not used within seconds; `test_requests` sees that it is fetched once.
    """
    from_gradio = message.location["url"].endswith("/gradio_api/cancel") or (
        "/assets/" in message.location["url"] and message.text.strip().startswith(ABORTED)
    )
    is_late = "was preloaded using link preload but not used within" in message.text
    return message.type in ("error", "warning") and not from_gradio and not is_late


def is_local_url(url: str) -> bool:
    """Return whether a URL needs no network."""
    return url.startswith(("http://127.0.0.1:", "http://localhost:", "data:", "blob:"))
