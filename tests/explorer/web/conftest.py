"""The page and a visitor: what its script in the browser would do with Python's answers."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace

import pytest

from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.web.events.opening import Opening
from explorer.web.page import Page


@pytest.fixture(scope="session")
def built_page(checkpoint_of_each_style) -> Page:
    """Built once: Gradio takes a second for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.checkpoint.CHECKPOINTS", checkpoint_of_each_style)
        page = Page(Library("cpu"), "rope")
        page.blocks = page.build()
    return page


@pytest.fixture(scope="module")
def page(built_page, style_checkpoints) -> Page:
    """With a checkpoint of each style."""
    return built_page


@pytest.fixture(scope="module")
def library(page) -> Library:
    return page.library


@pytest.fixture
def opening(library) -> Opening:
    return Opening(Runs(library))


@pytest.fixture
def asked(opening) -> PageState:
    """A token in the middle of a prompt."""
    return PageState(opening.run_of("rope", "the fox asked the owl"), Selection(query=2, key=1))


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch):
    """Every new token is told alone."""
    monkeypatch.setattr("explorer.web.events.generation_events.SECONDS_AN_ANSWER", 0)


@pytest.fixture
def told(monkeypatch) -> list[str]:
    """What the visitor was warned of."""
    warnings = []
    monkeypatch.setattr("explorer.web.events.run_events.gr.Warning", warnings.append)
    return warnings


@pytest.fixture
def load(page) -> Callable[..., dict]:
    """`load(seed="3")` is the answer to a link with these parameters."""
    return lambda **query_params: page.events.on_load({}, SimpleNamespace(query_params=query_params))


@pytest.fixture
def merged(page) -> Callable[[dict, Iterable[dict]], dict]:
    """The state once the browser has merged the changes in all answers."""

    def merged(state: dict, answers: Iterable[dict]) -> dict:
        for answer in answers:
            update = answer.get(page.layout.update) or answer[page.layout.written]
            state = state | update["change"]
        return state

    return merged


@pytest.fixture
def state(load, merged) -> dict:
    """After a visitor opened a link to a prompt."""
    return merged({}, [load(text="the fox asked the owl", seed="3", temperature="1.0", top_k="0")])
