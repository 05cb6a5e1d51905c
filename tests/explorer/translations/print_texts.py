"""Script that prints all texts of the page in a language, as JSON pairs (location, text)."""

import json
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import gradio as gr
import numpy as np
from view_texts import inspection_texts, view_texts

from explorer.architecture.summary import model_summary
from explorer.explain.derivation import ClickedPoint, get_element, get_item
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState, apply_command
from explorer.tracing.jobs import RequestBudget
from explorer.tracing.model_library import ModelLibrary
from explorer.translations import use_locale
from explorer.views import VIEWS
from explorer.web import shared_constants
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.browser_routes import parse_page_request
from explorer.web.layout import view_markup
from explorer.web.page import Page, decorate_api_function
from explorer.web.public_api import PublicApi
from explorer.web.rate_limits import PromptRateLimiter
from explorer.web.user_messages import collect_notices
from explorer.web.widgets.view_tools import training_moments

READ_ATTRIBUTES = ("aria-label", "aria-description", "alt", "placeholder", "title")
QUERIES = (
    {},
    {"query": "3", "find": "fox", "temperature": "0"},
    {"text": "The cat "},
    {"text": "qx zx vv kk jq"},
    {"prompt": "300.301.302", "generated": "12.7.300", "branches": "12.7.301~beam:12.9"},
    {
        "text": "The cat sat",
        "top_k": "5",
        "top_p": "0.8",
        "min_p": "0.5",
        "repetition_penalty": "1.2",
        "edits": "blocks.2.attn.z.1*zero~blocks.1.ffn.hidden*scale*2~rope.angles*shift*5~embed.3*scale*2~embed*zero",
    },
)
# Keys of widgets' values that are not translated: tokens, names, ids, prompts.
DATA = {
    "token",
    "tokens",
    "id",
    "name",
    "next",
    "text",
    "prompt",
    "generated",
    "find",
    "offer",
    "look",
    "edit",
    "data",
    "after",
}


def html_texts(template: str) -> Iterator[str]:
    """Yield the texts between tags, and of attributes that users read."""
    texts: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data):
            texts.append(data)

        def handle_starttag(self, tag, attributes):
            texts.extend(value for name, value in attributes if name in READ_ATTRIBUTES)

    Reader().feed(template)
    yield from texts


def layout_texts(page: Page) -> Iterator[tuple[str, str]]:
    """Yield labels, markup and initial texts of the page's components, and the markup of its views."""
    for block in page.build().blocks.values():
        location = f"{type(block).__name__} {block.elem_id}"
        if type(block).__name__ == "Api":
            continue
        for name in ("label", "info", "placeholder"):
            yield f"{location} {name}", getattr(block, name, None) or ""
        if type(block) is gr.Button:
            yield location, block.value
        for text in html_texts(block.value) if type(block) is gr.HTML else ():
            yield location, text
    for view in VIEWS:
        for text in html_texts(view_markup(view)):
            yield view.name, text


def content_texts(contents: Any, location: str) -> Iterator[tuple[str, str]]:
    if isinstance(contents, str):
        yield location, contents
    if isinstance(contents, dict):
        for name, value in contents.items():
            if name not in DATA:
                yield from content_texts(value, f"{location} {name}")
    if isinstance(contents, list | tuple):
        for value in contents:
            yield from content_texts(value, location)


def answer_texts(page: Page) -> Iterator[tuple[str, str]]:
    """Yield the texts around the tabs, and descriptions of interventions."""
    endpoints = BrowserEndpoints(page.actions.state_builder.runs)
    view_prefixes = tuple(f"{view.name}-" for view in VIEWS)
    for query in QUERIES:
        page_state, settings = page.actions.parse_query(query | {"view": "kv_cache"}), GenerationSettings.parse(query)
        state = page_state.as_dict() | settings.as_dict()
        for stage in (0, 1):
            contents = endpoints.answer("show", state, stage)["contents"]
            for name, content in contents.items():
                if name == shared_constants.CHANGES:
                    content = [words for interventions in content.values() for _text, words in interventions]
                if name == shared_constants.GUESS:
                    content = {key: value for key, value in content.items() if key != "choices"}  # tokens
                if name in (shared_constants.PICKER, shared_constants.VIEW):
                    continue  # names of models, and markup whose texts are yielded above
                if not name.startswith(view_prefixes) and name != shared_constants.STORY:
                    yield from content_texts(content, name)
    renewed = endpoints.answer("show", state | {"version": f"{page.checkpoint}@other"})["contents"]
    yield shared_constants.PROBLEM, renewed[shared_constants.PROBLEM]


def error_texts(page: Page) -> Iterator[tuple[str, str]]:
    """Yield the messages of errors that requests can cause, and the notices."""
    api = PublicApi(page.actions.state_builder, page.checkpoint)
    mistakes: list[Callable[[], Any]] = [
        lambda: PageState.parse({}),
        lambda: PageState.parse({"checkpoint": "a", "prompt": "1.b"}),
        lambda: PageState.parse({"checkpoint": "a", "edits": "embed*square"}),
        lambda: PageState.parse({"checkpoint": "a", "edits": "embed*base*500"}),
        lambda: PageState.parse({"checkpoint": "a", "edits": "rope.angles*shift*1.5"}),
        lambda: PageState.parse({"checkpoint": "a", "branches": "there:1"}),
        lambda: parse_page_request(b"{"),
        lambda: parse_page_request(b'{"about": "nothing", "state": {}}'),
        lambda: page.actions.apply({"kind": "nothing"}, {}),
        lambda: ClickedPoint(0.5, 0).column,
        lambda: ClickedPoint(0, 0).coordinate("layer"),
        lambda: get_element(np.zeros(3), 4),
        lambda: get_item([], 0),
        lambda: api.explore(""),
        lambda: api.explore("a", "no-such-model"),
        lambda: api.generate("a", top_k=-1),
        lambda: api.generate("a", temperature=3),
        lambda: api.generate("a", stop="x" * 100),
        lambda: apply_command(page.actions.parse_query({}), 0, {"kind": "undo"}),
        lambda: RequestBudget(0, 1).check(1),
        lambda: decorate_api_function(lambda _request: 1 / 0, PromptRateLimiter())(None),
        lambda: page.actions.parse_query({"edits": "blocks.0.attn.z.99*zero"}),
    ]
    for number, mistake in enumerate(mistakes):
        with collect_notices() as notices:
            try:
                mistake()
            except Exception as error:
                notices.append(str(error))
        yield from ((f"mistake {number}", text) for text in notices)


def main(language: str):
    page = Page(ModelLibrary("cpu"), "llama-fables")
    with use_locale(language):
        texts = [
            *layout_texts(page),
            *answer_texts(page),
            *view_texts(page),
            *inspection_texts(page),
            *error_texts(page),
        ]
        texts += [(name, model_summary(page.library.model(name)[0])) for name in ("llama-fables", "llama-fables-gpt")]
        texts += [("series", words) for _name, words, _tick in training_moments("b", ["b", "b/step-01"])]
    print(json.dumps(texts))


if __name__ == "__main__":
    main(*sys.argv[1:])
