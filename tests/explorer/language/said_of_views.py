"""What views say, and the workings of their numbers: pairs of where and what."""

import json
import re
from collections.abc import Iterator
from typing import Any

from explorer.state.errors import NoSuchPoint
from explorer.views import VIEW_NAMED, VIEWS
from explorer.views.choices import OF_TOKENS
from explorer.views.overview.diagram import Diagram
from explorer.views.view import SmallMultiples
from explorer.web import protocol
from explorer.web.answers.endpoints import Endpoints
from explorer.web.answers.open_view import open_view_of
from explorer.web.page import Page

LOOKS = (  # each asks for other words
    {"text": "The"},
    {"text": "The cat sat. The cat sat", "query": "5", "key": "2", "head_score": "induction", "dim": "3"},
    {
        "text": "The cat sat. The cat sat. " * 8,
        "query": "40",
        "key": "9",
        "rival": "2",
        "pattern": "moved",
        "lens": "rank",
    },
    {"text": "The cat sat", "pattern": "layer_mean", "lens": "entropy", "depth": "2", "tap": "blocks.0.attn.k"},
    {"text": "The cat sat", "pattern": "chosen_max", "head_score": "spread", "tap": "blocks.0.attn.scores"},
    {"text": "The cat", "edits": "rope.angles*shift*5", "query": "1"},
    {"text": "The cat", "edits": "blocks.1.attn.z.1*zero", "layer": "1", "head": "1"},
    {"text": "The cat sat", "edits": "blocks.2.attn.z*scale*2~blocks.1.ffn.hidden*zero~rope.angles*zero", "layer": "2"},
    {
        "text": "The cat sat",
        "query": "2",
        "edits": "blocks.1.attn.z.1*mean~blocks.1.attn.pattern.1@2*mask*1~blocks.0.attn.pattern*drop*0"
        "~embed@1-*add*ov.1.0.2*1~blocks.0.ffn.gate.7*clamp*2~blocks.0.attn_norm*norm*none~final_norm*norm*layernorm"
        "~blocks.2.resid_mid*remove*unembed.9-10",
    },
    {"checkpoint": "llama-fables-gpt", "text": "The cat sat", "query": "1", "rival": "2", "neuron": "7"},
    {"checkpoint": "llama-fables-gpt", "text": "The cat sat", "edits": "position_embed*shift*5"},
)
NAMES_AND_TOKENS = (*OF_TOKENS, "tap")  # choices of what is no word of ours
SHOWN = {"alt", "hovertemplate", "hovertext", "name", "text", "ticktext", "x", "y"}  # what figures have to read
INSPECTED = (
    {"query": "3", "key": "1", "checkpoint": "llama-fables"},
    {
        "query": "3",
        "checkpoint": "llama-fables-gpt",
        "lens": "target",
        "target": "12",
        "rival": "9",
        "pattern": "moved",
    },
    {
        "text": "The cat sat",
        "query": "2",
        "checkpoint": "llama-fables",
        "lens": "entropy",
        "pattern": "layer_max",
        "edits": "blocks.2.attn.z.1*zero~blocks.1.ffn.hidden*scale*2~rope.angles*shift*5~embed.3*scale*2~embed*zero",
    },
    {
        "text": "The cat sat",
        "query": "2",
        "checkpoint": "llama-fables",
        "edits": "blocks.0.attn.z.0@0-1*mean~blocks.0.attn.pattern.0@2*mask*1~blocks.*.attn.pattern@2*drop*1"
        "~embed@1-*add*unembed.9*1"
        "~blocks.0.ffn.hidden*clamp*2~blocks.0.attn_norm*norm*none~final_norm*norm*layernorm~blocks.0.ffn_norm*norm*none",
    },
)
POINTS = [{"x": x, "y": y, "curve": x % 2, "item": y} for x, y in ((0, 0), (1, 2), (3, 1), (2, 9))]
# Of what is told of a number, what is no word of ours: lines of code, tokens, names of values, functions and symbols.
CODE = re.compile(
    r"(?:explorer|model)/\S+\.py:\d+  .*|“[^”]*”|(?<![\w.])(?:(?:blocks\.\d+\.)?(?:attn|ffn)\.\w+|blocks\.\d+\.\w+"
    r"|\w+_\w+(?:\.\w+)*|embed|rope\.angles|logits?|gate|up|hidden|out|[qkv]|cos|sin|max|SiLU|ReLU|Σx²|qᵢ|kᵢ)(?![\w.])"
)


def of_views(page: Page) -> Iterator[tuple[str, str]]:
    """What every view says of a run: around its pictures, on them and below them."""
    for query in LOOKS:
        for name in VIEW_NAMED:
            shown = open_view_of(page.events.opening.runs, page.events.opened(query | {"view": name}))
            told = [shown.words, shown.formula, *(what_if.title for what_if, _amount in shown.what_ifs)]
            told += [scope.title for what_if, _amount in shown.what_ifs for scope in what_if.scopes]
            told += [edit.words(shown.trace.config) for edit in shown.trace.edits]
            for choice in shown.choices:
                told.append(choice.title)
                if choice.field not in NAMES_AND_TOKENS:
                    told += [words for _value, words in choice.options]
            yield from ((name, text) for text in told)
            for panel in filter(shown.has, shown.view.panels):
                mark, told = shown.mark(panel), [*of_picture(shown.draw(panel))]
                yield from ((f"{name} {panel.name}", text) for text in (mark.words, mark.details, *told))


def of_picture(picture: Any) -> Iterator[str]:
    if isinstance(picture, SmallMultiples):
        yield picture.alt
    elif isinstance(picture, Diagram):
        yield picture.alt
        yield from (text for part in picture.parts for text in (part.told, part.written))
        yield from (word.text for sheet in picture.sheets for word in sheet.words)
    else:
        yield from of_figure(json.loads(picture.to_json()))


def of_figure(content: Any, shown: bool = False) -> Iterator[str]:
    """Texts of a figure but for its template, which has fonts alone."""
    if isinstance(content, str) and shown:
        yield content
    if isinstance(content, dict):
        for name, value in content.items():
            if name != "template":
                yield from of_figure(value, name in SHOWN)
    if isinstance(content, list):
        for value in content:
            yield from of_figure(value, shown)


def of_inspections(page: Page) -> Iterator[tuple[str, str]]:
    """How clicked numbers come about, without what is no word of ours: see `CODE`."""
    endpoints = Endpoints(page.events.opening.runs)
    for query in INSPECTED:
        for view in VIEWS:
            state = page.events.opened(query | {"view": view.name})
            for panel in view.panels:
                for point in POINTS:
                    try:
                        told = endpoints.inspect(state.as_dict(), protocol.in_tab(view.name, panel.name), point)
                    except NoSuchPoint:  # which views have their own words for
                        continue
                    yield from ((f"{view.name}-{panel.name} {point}", CODE.sub("", line)) for line in told.splitlines())
