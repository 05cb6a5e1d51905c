"""Servers of their own, and people whose page may fail to load what it asks for."""

import re
from collections.abc import Iterator

import pytest

from ..conftest import DESK, PATIENCE, leave
from ..person import Person
from .lost import SERVE, Server, two_workers_of

NOT_COME = re.compile("(Failed to load script|Failed to fetch dynamically imported module|Unable to preload CSS for)")


@pytest.fixture(scope="module")
def kept_server(checkpoints) -> Iterator[Server]:
    """Which may have been stopped."""
    server = Server("-c", SERVE, checkpoints, "--port", Server)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(kept_server) -> Server:
    """Which runs when the test begins."""
    if not kept_server.runs:
        kept_server.start()
    return kept_server


@pytest.fixture
def two_workers(checkpoints) -> Iterator[Server]:
    with two_workers_of(SERVE, checkpoints) as server:
        yield server


@pytest.fixture
def somebody(profile, address, kept_page):
    """Makes a person whose page may fail to load what it asks for, and nothing else. Nobody else's page is open: what
    happens to the profile, as going offline, happens to all its pages."""
    pages, errors = [], []
    while kept_page:
        leave(kept_page.pop())

    def arrive(address=address, **query) -> Person:
        page = profile.new_page()
        pages.append(page)
        page.set_viewport_size(DESK)
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: NOT_COME.match(str(error)) or errors.append(str(error)))
        return Person(page, address).open(**query)

    yield arrive
    profile.set_offline(False)
    for page in pages:
        page.close()
    assert errors == []
