"""Fixtures of the page: the page itself, served or not, and the state that its script in the browser would hold."""

import json
from collections.abc import Callable, Iterable, Iterator

import httpx
import pytest

from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web import rate_limits
from explorer.web.actions.page_actions import PageUpdate
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.page import Page
from explorer.web.rate_limits import MINUTE_S, SlidingWindowLimiter
from explorer.web.user_messages import collect_notices
from tests.deployment import RedisServer


@pytest.fixture(scope="session")
def built_page(style_checkpoint_folder) -> Page:
    """Page that is built once per session, because Gradio takes a second for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.checkpoint.CHECKPOINTS", style_checkpoint_folder)
        page = Page(ModelLibrary("cpu"), "rope")
        page.blocks = page.build()
    return page


@pytest.fixture(scope="module")
def page(built_page, style_checkpoints) -> Page:
    """Page on a library with a checkpoint of each style."""
    return built_page


@pytest.fixture(scope="module")
def library(page) -> ModelLibrary:
    return page.library


@pytest.fixture
def builder(library) -> PageStateBuilder:
    return PageStateBuilder(RunService(library))


@pytest.fixture
def page_state(builder) -> PageState:
    """Page state with a token selected in the middle of a prompt."""
    return PageState(builder.create_run("rope", "the fox asked the owl"), Selection(query=2, key=1))


@pytest.fixture(autouse=True)
def answer_every_token(monkeypatch):
    """Send an answer for every new token, however fast they are generated."""
    monkeypatch.setattr("explorer.web.actions.generation_actions.MIN_ANSWER_INTERVAL_S", 0)


@pytest.fixture(autouse=True)
def log_lines(monkeypatch):
    """Count no log lines of other tests."""
    monkeypatch.setattr(rate_limits, "log_lines", SlidingWindowLimiter(MINUTE_S))


@pytest.fixture
def notices() -> Iterator[list[str]]:
    """Sentences that the page shows to the user."""
    with collect_notices() as notices:
        yield notices


@pytest.fixture
def act(page) -> Callable[..., PageUpdate]:
    """Function that runs an action of the page's script: `act(state, "prompt", text="the owl")`."""
    return lambda state, kind, **action: page.actions.apply({"kind": kind} | action, state)


@pytest.fixture
def move(act) -> Callable[..., dict]:
    """Function that returns the state after an action, which must succeed."""

    def state_after(state: dict, kind: str, **action) -> dict:
        update = act(state, kind, **action)
        assert update.is_done
        return state | update.change

    return state_after


@pytest.fixture
def load(act) -> Callable[..., PageUpdate]:
    """Function that opens a link: `load(seed="3")` has the query parameter `seed`."""
    return lambda **query: act({}, "load", query=query)


@pytest.fixture
def merge(notices) -> Callable[[dict, Iterable[dict]], dict]:
    """Function that returns the state after all updates of a generator, and collects their notices."""

    def merge_updates(state: dict, updates: Iterable[dict]) -> dict:
        for update in updates:
            notices.extend(update.get("notices", []))
            state = state | update.get("change", {})
        return state

    return merge_updates


@pytest.fixture
def state(load) -> dict:
    """State of the page after a link to a prompt was opened."""
    return dict(load(text="the fox asked the owl", seed="3", temperature="1.0", top_k="0").change)


@pytest.fixture(params=["memory", "redis"])
def address(request) -> str:
    """URL of a store of each kind."""
    return request.getfixturevalue("redis_server").address if request.param == "redis" else ""


@pytest.fixture
def redis_server(tmp_path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def served_page(library) -> Iterator[Page]:
    """The page, served."""
    page = Page(library, "rope")
    page.blocks = page.launch(prevent_thread_lock=True, quiet=True)
    yield page
    page.blocks.close(verbose=False)


@pytest.fixture
def client(served_page) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served_page.blocks.local_url, timeout=20) as client:
        yield client


@pytest.fixture
def post(client) -> Callable[..., httpx.Response]:
    """Function that posts JSON to an endpoint of the page."""

    def post_json(name: str, given, **headers: str) -> httpx.Response:
        content = given if isinstance(given, bytes) else json.dumps(given)
        return client.post(f"explorer/{name}", content=content, headers={"Content-Type": "application/json", **headers})

    return post_json


@pytest.fixture
def ask(post) -> Callable[..., list[dict]]:
    """Function that returns the parsed lines of an answer."""

    def answer_lines(about: str, state: dict, action: dict | None = None, **headers: str) -> list[dict]:
        response = post("answer", {"about": about, "state": state} | ({"action": action} if action else {}), **headers)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/x-ndjson"
        return [json.loads(line) for line in response.text.splitlines()]

    return answer_lines
