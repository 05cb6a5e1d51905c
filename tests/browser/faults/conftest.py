"""Servers for the fault tests, and people whose page may fail to load its files."""

import re
from collections.abc import Iterator

import pytest

from tests.deployment import Deployment, deploy

from ..conftest import DESK, TIMEOUT_MS, close_page
from ..person import Person
from .lost import SERVE, SERVE_SLOWLY_AND_SHARE, Server

LOAD_ERROR = re.compile("(Failed to load script|Failed to fetch dynamically imported module|Unable to preload CSS for)")


@pytest.fixture(scope="module")
def kept_server(checkpoints) -> Iterator[Server]:
    """Server shared by the module's tests, which may have been stopped."""
    server = Server("-c", SERVE, checkpoints, "--port", Server)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(kept_server) -> Server:
    """Server that runs when the test begins."""
    if not kept_server.is_running:
        kept_server.start()
    return kept_server


@pytest.fixture
def deployment(checkpoints, tmp_path) -> Iterator[Deployment]:
    """Two processes behind nginx that share through Redis, one of which the test may kill."""
    with deploy(tmp_path, "-c", SERVE_SLOWLY_AND_SHARE, checkpoints) as running:
        yield running


@pytest.fixture
def somebody(profile, address, kept_page):
    """Function that opens a page whose files may fail to load, without any other complaints, and returns its `Person`.

    With `opens=False` the page is blank.

    No other page is open, because what happens to the profile (going offline) happens to all its pages.
    """
    pages, errors = [], []
    while kept_page:
        close_page(kept_page.pop())

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
