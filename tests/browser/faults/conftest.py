"""Servers for the fault tests, and users whose page may fail to load its files."""

import re
from collections.abc import Iterator

import pytest

from tests.deployment import Deployment, deploy

from ..conftest import DESK, TIMEOUT_MS, close_page
from ..person import Person
from .servers import SERVE, SERVE_SLOWLY_AND_SHARE, Server

LOAD_ERROR = re.compile("(Failed to load script|Failed to fetch dynamically imported module|Unable to preload CSS for)")


@pytest.fixture(scope="module")
def module_server(checkpoints) -> Iterator[Server]:
    """Server shared by the module's tests; a test may have stopped it."""
    server = Server("-c", SERVE, checkpoints, "--port", Server)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(module_server) -> Server:
    """Server that runs when the test begins."""
    if not module_server.is_running:
        module_server.start()
    return module_server


@pytest.fixture
def deployment(checkpoints, tmp_path) -> Iterator[Deployment]:
    """Two processes behind nginx that share data through Redis; the test may kill one of them."""
    with deploy(tmp_path, "-c", SERVE_SLOWLY_AND_SHARE, checkpoints) as running:
        yield running


@pytest.fixture
def open_unreliable_page(profile, address, idle_pages):
    """Function that opens a page whose files may fail to load, and returns its `Person`; other errors fail the test.

    With `opens=False` the page is blank.

    All other pages are closed first, because going offline affects every page of the profile.
    """
    pages, errors = [], []
    while idle_pages:
        close_page(idle_pages.pop())

    def arrive(address=address, opens=True, **query) -> Person:
        page = profile.new_page()
        pages.append(page)
        page.set_viewport_size(DESK)
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: LOAD_ERROR.match(str(error)) or errors.append(str(error)))
        person = Person(page, address)
        return person.open(**query) if opens else person

    yield arrive
    profile.set_offline(False)
    for page in pages:
        page.close()
    assert errors == []
