"""The app and a browser, started once; people with a page each, who fail the test where the page complains."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Playwright, expect, sync_playwright

from explorer.state.settings import GenerationSettings
from explorer.tracing.library import Library
from explorer.tracing.offered_models import ANY_NAME
from explorer.tracing.runs import Runs
from explorer.web.events.opening import Opening
from explorer.web.events.run_events import FIRST_PROMPT
from explorer.web.page import Page
from model.checkpoint import load_checkpoint
from model.pretrained.saving import save_hugging_face
from tests.hub import Hub, reach, serving
from tests.specimens import STORIES

from . import chromium
from .checkpoints import write_checkpoints
from .chromium import FLAGS
from .person import Person

DESK = {"width": 1440, "height": 900}
PATIENCE = 40_000  # milliseconds until a test gives up; for busy machines, as nothing takes long where all is well
ARGUMENTS = (*FLAGS, "--process-per-site")  # pages share what is compiled of their scripts: half of what opening costs
ABORTED = ("AbortError: signal is aborted without reason", "Unexpected error Connection errored out.")
TELL_ERROR_TOASTS = """new MutationObserver(() => {
  for (const toast of document.querySelectorAll(".toast-body.error:not([data-told])")) {
    toast.dataset.told = true;
    console.error("toast: " + toast.textContent);
  }
}).observe(document, { childList: true, subtree: true });"""


FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]):
    """Where `CI` is set, on busy machines, browser tests have a second try; pytest lists those that needed it."""
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
    """The tests' models in the place of `checkpoints/`."""
    folder = tmp_path_factory.mktemp("checkpoints")
    write_checkpoints(folder, tiny_tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.checkpoint.CHECKPOINTS", folder)
        yield folder


@pytest.fixture(scope="package")
def hub(tmp_path_factory) -> Iterator[Hub]:
    """With a model that is not on this machine, and one that needs a licence."""
    hub, folder = Hub(), tmp_path_factory.mktemp("hub")
    save_hugging_face(*load_checkpoint(STORIES), folder / "stories")
    hub.models = {"somebody/stories": folder / "stories", "somebody/gated": folder / "stories"}
    hub.gated.add("somebody/gated")
    with pytest.MonkeyPatch.context() as patch, serving(hub) as its_address:
        reach(patch, its_address, folder / "cache")
        yield hub


@pytest.fixture(scope="package")
def library(checkpoints, hub) -> Library:
    """Theirs, and one more that somebody opened."""
    library = Library("cpu", hub_names=ANY_NAME)
    library.offered.open(STORIES)
    return library


@pytest.fixture(scope="package")
def address(library):
    """Where the app answers."""
    blocks = Page(library, "tiny").launch(prevent_thread_lock=True, quiet=True)
    yield blocks.local_url
    blocks.close(verbose=False)


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def profile(playwright, address, tmp_path_factory) -> Iterator[BrowserContext]:
    """The profile that everybody's page is in: a browser keeps there what it compiled of the page's scripts, which is
    half of the time that the page takes to open, and in memory as long as there is a page. Nothing else stays between
    tests."""
    context = playwright.chromium.launch_persistent_context(
        tmp_path_factory.mktemp("profile"), executable_path=executable(playwright), args=ARGUMENTS
    )
    context.pages[0].goto(f"{address}theme.css")  # it stays to the end, and with it the process of this site's pages
    yield context
    context.close()


def executable(playwright: Playwright) -> str:
    """Where there is no browser the tests are skipped, which is said."""
    try:
        return chromium.executable(playwright)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def touchscreen(playwright) -> Iterator[BrowserContext]:
    """A profile on a device that is touched."""
    browser = playwright.chromium.launch(executable_path=executable(playwright), args=ARGUMENTS)
    yield browser.new_context(has_touch=True)
    browser.close()


def arrived(profile: BrowserContext, address: str, viewport=DESK, **media) -> Person:
    """Somebody with a page of their own, who notes what it complains of."""
    profile.set_offline(False)  # which a test that failed may have left it
    page = profile.new_page()
    page.set_viewport_size(viewport)
    page.emulate_media(**media)
    page.add_init_script(TELL_ERROR_TOASTS)
    page.set_default_timeout(PATIENCE)
    page.wait_for_function = partial(page.wait_for_function, polling=50)  # not at every frame
    person = Person(page, address)
    complaints = person.complaints
    page.on(
        "console",
        lambda said: is_complaint(said) and complaints.append(f"{said.text} {said.location}"),
    )
    page.on("pageerror", lambda error: complaints.append(error.stack))
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: at_home(request.url) or complaints.append(f"asks {request.url}"))
    return person


def leave(person: Person):
    if not person.page.is_closed():
        if at_home(person.page.url):
            person.page.evaluate("localStorage.clear()")
            person.page.context.clear_cookies()
        person.page.close()


@pytest.fixture(scope="package")
def kept_page(profile, address) -> Iterator[list[Person]]:
    """The person at the page that `person` keeps open, if any."""
    kept = []
    yield kept
    for person in kept:
        leave(person)


@pytest.fixture
def newcomer(profile, address) -> Iterator[Callable[..., Person]]:
    """Makes a person with a page of their own; at the end, nobody's page may have complained."""
    people = []

    def arrive(address=address, viewport=DESK, profile=profile, **media) -> Person:
        people.append(arrived(profile, address, viewport, **media))
        return people[-1]

    yield arrive
    for person in people:
        leave(person)
    assert [complaint for person in people for complaint in person.complaints] == []


@pytest.fixture(scope="package")
def opening(library) -> Opening:
    """What an address of the app opens."""
    return Opening(Runs(library))


@pytest.fixture
def visitor(request, kept_page, profile, address, opening) -> Iterator[Callable[..., Person]]:
    """Leads somebody to where an address would (as `Person.open` has it), at the page that others had open before,
    which costs less than to open one. For tests that change nothing but the state, others ask for a `newcomer`; one
    that fails leaves no page to the next."""
    visitors = []

    def visit(view: str = "attention", viewport=DESK, **query) -> Person:
        person = kept_page.pop() if kept_page else arrived(profile, address).open()
        visitors.append(person)
        person.page.set_viewport_size(viewport)
        words = {name: str(value) for name, value in query.items()}
        asked = opening.restored({"checkpoint": "tiny", "text": FIRST_PROMPT, "view": view} | words)
        return person.begin_again(asked.as_dict() | GenerationSettings.parse(words).as_dict())

    yield visit
    for person in visitors:
        if request.node.stash[FAILED] or person.complaints:
            leave(person)
        else:
            person.page.unroute_all()
            kept_page.append(person)
    assert [complaint for person in visitors for complaint in person.complaints] == []


@pytest.fixture
def person(visitor) -> Person:
    """Somebody at the page as it opens."""
    return visitor()


def is_complaint(said) -> bool:
    """Whether a message of the console is an error or a warning of ours.

    Gradio 6.31 answers 500 where a cancelled generation ends while it is being cancelled; it is cancelled all the same.
    And as its page is left, it tells of the stream that it aborts then itself.
    """
    of_gradio = said.location["url"].endswith("/gradio_api/cancel") or (
        "/assets/" in said.location["url"] and said.text.strip().startswith(ABORTED)
    )
    return said.type in ("error", "warning") and not of_gradio


def at_home(url: str) -> bool:
    """Whether it needs no network."""
    return url.startswith(("http://127.0.0.1:", "http://localhost:", "data:", "blob:"))
