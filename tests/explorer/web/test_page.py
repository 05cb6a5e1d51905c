"""The page as Gradio builds it."""

import re

import gradio as gr
import pytest

from explorer.errors import UserError
from explorer.views import FULL, STORY_STEPS, VIEWS
from explorer.web.layout import view_markup
from explorer.web.page import decorate_api_function
from explorer.web.rate_limits import PromptRateLimiter


def test_every_view_and_panel_has_an_element(page):
    blocks = page.blocks.blocks.values()
    markup = "".join(block.value for block in blocks if type(block) is gr.HTML)
    everywhere = markup + "".join(map(view_markup, VIEWS))
    ids = [block.elem_id for block in blocks if getattr(block, "elem_id", None)]
    ids += re.findall(r'\bid="([^"]+)"', everywhere)
    assert len(set(ids)) == len(ids)
    assert {f"{view.name}-{panel.name}" for view in VIEWS for panel in view.panels} <= set(ids)
    tabs = re.findall(r'role="tab"[^>]* data-view="(\w+)" aria-controls="([\w-]+)"', markup)
    listed = re.findall(r'<button type="button" data-view="(\w+)"', markup)
    names = [view for view, _controls in tabs]
    assert tuple(names[-len(STORY_STEPS) :]) == tuple(view.name for view in STORY_STEPS)
    assert sorted(names[: -len(STORY_STEPS)] + listed) == sorted(view.name for view in FULL)
    assert len(names) - len(STORY_STEPS) <= 7  # few enough to be visible at once
    assert {controls for _view, controls in tabs} <= set(ids)


def test_gradio_calls_python_for_few_events_only(page):
    called = {fn.api_name: fn for fn in page.blocks.fns.values() if fn.fn and (fn.inputs or fn.outputs)}
    assert {name for name, fn in called.items() if fn.api_visibility == "public"} == {"explore", "generate"}
    (localize,) = [fn for fn in called.values() if page.layout.prompt in fn.outputs]
    generation = {name: fn for name, fn in called.items() if fn.api_visibility != "public" and fn is not localize}
    assert generation.keys() == {"page_generate", "page_regenerate", "page_compare"}
    for fn in generation.values():
        assert fn.inputs == [page.layout.state] and fn.outputs == [page.layout.update]


def test_python_never_writes_state_component(page):
    assert all(page.layout.state not in fn.outputs for fn in page.blocks.fns.values())


def test_generation_events_cancel_each_other(page):
    writers = {i for i, fn in page.blocks.fns.items() if fn.fn and fn.outputs == [page.layout.update]}
    cancelled = [set(fn.cancels) for fn in page.blocks.fns.values() if fn.cancels]
    assert len(writers) == 3
    assert sorted(map(sorted, cancelled)) == sorted(
        [*(sorted(writers - {writer}) for writer in writers), *[sorted(writers)] * 3]
    )


def test_api_has_two_endpoints(page):
    assert set(page.blocks.get_api_info()["named_endpoints"]) == {"/explore", "/generate"}


def test_api_client_gets_user_error_message():
    def refuse(number: int) -> int:
        """Refuses."""
        raise UserError("not <this>")

    wrapped = decorate_api_function(refuse, PromptRateLimiter())
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__annotations__) == (
        "refuse",
        "Refuses.",
        refuse.__annotations__,
    )
    with pytest.raises(gr.Error) as caught:
        wrapped(1)
    assert caught.value.message == "not <this>"


def test_api_client_gets_log_id_of_internal_error(caplog):
    def slip(number: int):
        raise ValueError("could not broadcast <shapes>")

    with pytest.raises(gr.Error) as caught:
        decorate_api_function(slip, PromptRateLimiter())(1)
    name = re.search("It was logged as ([0-9a-f]{8})", caught.value.message)[1]
    assert "broadcast" not in caught.value.message
    assert name in caplog.records[-1].message and "could not broadcast <shapes>" in caplog.text
