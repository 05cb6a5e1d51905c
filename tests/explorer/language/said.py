"""Prints what the page says to visitors in a language: JSON, pairs of where and what."""

import html
import json
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import gradio as gr
import numpy as np
from said_of_views import of_inspections, of_views

from explorer.architecture.facts import facts
from explorer.explain.point import Point, element, nth
from explorer.language import speaking
from explorer.state.page_state import PageState
from explorer.state.settings import GenerationSettings
from explorer.state.tree_commands import after
from explorer.tracing.library import Library
from explorer.tracing.work import Work
from explorer.views import VIEWS
from explorer.web import protocol
from explorer.web.answers.endpoints import Endpoints
from explorer.web.api import Api
from explorer.web.page import Page, told_to_programs
from explorer.web.widgets.series import Series

READ = ("aria-label", "aria-description", "alt", "placeholder", "title")  # attributes
ASKED = (
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
# Of what widgets are given, what is no word of ours: tokens, names, ids, prompts.
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


def of_html(template: str) -> Iterator[str]:
    """What is between tags, and attributes that are read."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data):
            found.append(data)

        def handle_starttag(self, tag, attributes):
            found.extend(value for name, value in attributes if name in READ)

    Reader().feed(template)
    yield from found


def of_layout(page: Page) -> Iterator[tuple[str, str]]:
    """Labels and templates, and words that are there from the beginning."""
    for block in page.build().blocks.values():
        place = f"{type(block).__name__} {block.elem_id}"
        if type(block).__name__ == "Api":
            continue
        for name in ("label", "info", "placeholder"):
            yield f"{place} {name}", getattr(block, name, None) or ""
        if type(block).__name__ in ("Button", "Markdown", "Words"):
            yield place, block.value
        for text in of_html(getattr(block, "html_template", "")):
            yield place, text


def of_contents(contents: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(contents, str):
        yield place, contents
    if isinstance(contents, dict):
        for name, value in contents.items():
            if name not in DATA:
                yield from of_contents(value, f"{place} {name}")
    if isinstance(contents, list | tuple):
        for value in contents:
            yield from of_contents(value, place)


def of_answers(page: Page) -> Iterator[tuple[str, str]]:
    """What stands around the tabs, and the changes of a run."""
    endpoints = Endpoints(page.events.opening.runs)
    of_views = tuple(f"{view.name}-" for view in VIEWS)
    for query in ASKED:
        asked, settings = page.events.opened(query | {"view": "kv_cache"}), GenerationSettings.parse(query)
        state = asked.as_dict() | settings.as_dict()
        for part in (0, 1):
            contents = endpoints.answer("show", state, part)["contents"]
            for name, content in contents.items():
                if name == protocol.CHANGES:
                    content = [words for made in content.values() for _text, words in made]
                if name == protocol.PICKER:
                    continue  # names of models
                if not name.startswith(of_views) and name != protocol.STORY:
                    yield from of_contents(content, name)
    renewed = endpoints.answer("show", state | {"version": f"{page.checkpoint}@other"})["contents"]
    yield protocol.PROBLEM, renewed[protocol.PROBLEM]


def of_mistakes(page: Page) -> Iterator[tuple[str, str]]:
    """What a visitor is told who asks for what there is not."""
    endpoints, api = Endpoints(page.events.opening.runs), Api(page.events.opening, page.checkpoint)
    warnings: list[str] = []
    gr.Warning = warnings.append
    mistakes: list[Callable[[], Any]] = [
        lambda: PageState.parse([]),
        lambda: PageState.parse({}),
        lambda: PageState.parse({"checkpoint": "a", "prompt": "1.b"}),
        lambda: PageState.parse({"checkpoint": "a", "edits": "embed*square"}),
        lambda: PageState.parse({"checkpoint": "a", "edits": "embed*base*500"}),
        lambda: PageState.parse({"checkpoint": "a", "edits": "rope.angles*shift*1.5"}),
        lambda: PageState.parse({"checkpoint": "a", "branches": "there:1"}),
        lambda: endpoints.answer("nothing", {}),
        lambda: endpoints.inspect({}, None, {}),
        lambda: Point.parse([]),
        lambda: Point.parse({}),
        lambda: Point.parse({"x": 1}),
        lambda: Point.parse({"x": 1, "y": "b"}),
        lambda: Point(0.5, 0).column,
        lambda: Point(0, 0).of("layer"),
        lambda: element(np.zeros(3), 4),
        lambda: nth([], 0),
        lambda: api.explore(""),
        lambda: api.explore("a", "no-such-model"),
        lambda: api.generate("a", top_k=-1),
        lambda: api.generate("a", temperature=3),
        lambda: api.generate("a", stop="x" * 100),
        lambda: after(page.events.opened({}), 0, {"kind": "undo"}),
        lambda: Work(0, 1).go_on(1),
        lambda: told_to_programs(lambda: 1 / 0)(),
        lambda: page.events.opened({"edits": "blocks.0.attn.z.99*zero"}),
    ]
    for number, mistake in enumerate(mistakes):
        try:
            mistake()
        except Exception as error:
            yield f"mistake {number}", str(error)
    yield from (("warning", html.unescape(text)) for text in warnings)


def main(language: str):
    page = Page(Library("cpu"), "llama-fables")
    with speaking(language):
        said = [*of_layout(page), *of_answers(page), *of_views(page), *of_inspections(page), *of_mistakes(page)]
        said += [(name, facts(page.library.model(name)[0])) for name in ("llama-fables", "llama-fables-gpt")]
        said += [("series", words) for _name, words, _tick in Series.pack("b", ["b", "b/step-01"])]
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
