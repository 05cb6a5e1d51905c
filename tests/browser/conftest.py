"""The app and a browser, started once; people with a page each, who fail the test where the page complains."""

import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from explorer.library import Library
from explorer.page import Page

from .checkpoints import write_checkpoints
from .person import Person

PATIENCE = 40_000  # milliseconds until a test gives up; for busy machines, as nothing takes long where all is well
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
TELL_ERROR_TOASTS = """new MutationObserver(() => {
  for (const toast of document.querySelectorAll(".toast-body.error:not([data-told])")) {
    toast.dataset.told = true;
    console.error("toast: " + toast.textContent);
  }
}).observe(document, { childList: true, subtree: true });"""


@pytest.fixture(scope="package")
def checkpoints(tmp_path_factory, tiny_tokenizer):
    """The tests' models in the place of `checkpoints/`."""
    folder = tmp_path_factory.mktemp("checkpoints")
    write_checkpoints(folder, tiny_tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.checkpoint.CHECKPOINTS", folder)
        yield folder


@pytest.fixture(scope="package")
def address(checkpoints):
    """Where the app answers."""
    blocks = Page(Library("cpu"), "tiny").launch(prevent_thread_lock=True, quiet=True)
    yield blocks.local_url
    blocks.close(verbose=False)


@pytest.fixture(scope="package")
def browser():
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def newcomer(browser, address):
    """Makes a person with a browser profile of their own; at the end, nobody's page may have complained."""
    contexts, complaints = [], []

    def arrive(address=address, **options) -> Person:
        context = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | options))
        contexts.append(context)
        context.add_init_script(TELL_ERROR_TOASTS)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on(
            "console",
            lambda said: is_complaint(said) and complaints.append(f"{said.text} {said.location}"),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: at_home(request.url) or complaints.append(f"asks {request.url}"))
        return Person(page, address)

    yield arrive
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def person(newcomer) -> Person:
    """Somebody who looks at the page as it opens."""
    return newcomer().open()


def is_complaint(said) -> bool:
    """Whether a message of the console is an error or a warning of ours.

    Gradio 6.31 answers 500 where a cancelled generation ends while it is being cancelled; it is cancelled all the same.
    """
    return said.type in ("error", "warning") and not said.location["url"].endswith("/gradio_api/cancel")


def at_home(url: str) -> bool:
    """Whether it needs no network."""
    return url.startswith(("http://127.0.0.1:", "http://localhost:", "data:", "blob:"))
