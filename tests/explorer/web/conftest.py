"""Fixtures of the page: the page itself and the state that its script in the browser would hold."""

from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace

import pytest

from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.library import Library
from explorer.tracing.runs import RunService
from explorer.web.events.run_factory import RunFactory
from explorer.web.page import Page
from tests.deployment import RedisServer


@pytest.fixture(scope="session")
def built_page(checkpoint_of_each_style) -> Page:
    """Page that is built once for the session, because Gradio takes a second for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.checkpoint.CHECKPOINTS", checkpoint_of_each_style)
        page = Page(Library("cpu"), "rope")
        page.blocks = page.build()
    return page


@pytest.fixture(scope="module")
def page(built_page, style_checkpoints) -> Page:
    """Page on a library with a checkpoint of each style."""
    return built_page


@pytest.fixture(scope="module")
def library(page) -> Library:
    return page.library


@pytest.fixture
def opening(library) -> RunFactory:
    return RunFactory(RunService(library))


@pytest.fixture
def page_state(opening) -> PageState:
    """Page state with a token selected in the middle of a prompt."""
    return PageState(opening.create_run("rope", "the fox asked the owl"), Selection(query=2, key=1))


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch):
    """Send an answer for every new token, however fast they come."""
    monkeypatch.setattr("explorer.web.events.generation_events.MIN_ANSWER_INTERVAL_S", 0)


@pytest.fixture
def shown_warnings(monkeypatch) -> list[str]:
    """Texts of the warnings that the page shows."""
    warnings = []
    monkeypatch.setattr("explorer.web.events.run_events.gr.Warning", warnings.append)
    return warnings


@pytest.fixture
def load(page) -> Callable[..., dict]:
    """Function that returns the page's answer to a link: `load(seed="3")` has the query parameter `seed`."""
    return lambda **query_params: page.events.on_load({}, SimpleNamespace(query_params=query_params))


@pytest.fixture
def merged(page) -> Callable[[dict, Iterable[dict]], dict]:
    """Function that merges the changes of all answers into a state, as the browser does."""

    def merge_answers(state: dict, answers: Iterable[dict]) -> dict:
        for answer in answers:
            update = answer.get(page.layout.update) or answer[page.layout.generation_update]
            state = state | update["change"]
        return state

    return merge_answers


@pytest.fixture
def state(load, merged) -> dict:
    """State of the page after a link to a prompt was opened."""
    return merged({}, [load(text="the fox asked the owl", seed="3", temperature="1.0", top_k="0")])


@pytest.fixture(params=["memory", "redis"])
def address(request) -> str:
    """Address of a store of each kind."""
    return request.getfixturevalue("redis_server").address if request.param == "redis" else ""


@pytest.fixture
def redis_server(tmp_path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()
