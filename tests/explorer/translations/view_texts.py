"""Texts of the views and explanations of their numbers, as pairs (location, text)."""

import json
import re
from collections.abc import Iterator
from typing import Any

from explorer.errors import PointNotFoundError
from explorer.views import VIEW_BY_NAME, VIEWS
from explorer.views.overview.map_parts import ModelMap
from explorer.views.overview.whole_model import WholeModelFigure
from explorer.views.selection import TOKEN_FIELDS
from explorer.views.view import HeadHeatmaps, HeadTable
from explorer.web import shared_constants
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.browser_api.open_view import make_open_view
from explorer.web.page import Page

VIEW_QUERIES = (  # each gives different texts
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
NAMES_AND_TOKENS = (*TOKEN_FIELDS, "tap")  # fields whose options are names or tokens
READ_KEYS = {"alt", "hovertemplate", "hovertext", "name", "text", "ticktext", "x", "y"}  # keys with visible texts
INSPECTION_QUERIES = (
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
# Parts of an explanation that are not translated: code, tokens, names of values and functions, symbols.
CODE = re.compile(
    r"(?:explorer|model)/\S+\.py:\d+  .*|“[^”]*”|(?<![\w.])(?:(?:blocks\.\d+\.)?(?:attn|ffn)\.\w+|blocks\.\d+\.\w+"
    r"|\w+_\w+(?:\.\w+)*|embed|rope\.angles|logits?|gate|up|hidden|out|[qkv]|cos|sin|max|SiLU|ReLU|Σx²|qᵢ|kᵢ)(?![\w.])"
)


def view_texts(page: Page) -> Iterator[tuple[str, str]]:
    """Yield all texts of every view: in, around and below its figures."""
    for query in VIEW_QUERIES:
        for name in VIEW_BY_NAME:
            open_view = make_open_view(
                page.actions.state_builder.runs, page.actions.parse_query(query | {"view": name})
            )
            texts = [
                open_view.description,
                open_view.formula,
                *(what_if.title for what_if, _amount in open_view.intervention_controls),
            ]
            texts += [scope.title for what_if, _amount in open_view.intervention_controls for scope in what_if.scopes]
            texts += [edit.describe(open_view.trace.config) for edit in open_view.trace.edits]
            for choice in open_view.choices:
                texts.append(choice.title)
                if choice.field not in NAMES_AND_TOKENS:
                    texts += [words for _value, words in choice.options]
            yield from ((name, text) for text in texts)
            for panel in filter(open_view.has, open_view.view.panels):
                mark, texts = open_view.verify(panel), [*figure_texts(open_view.draw(panel))]
                yield from ((f"{name} {panel.name}", text) for text in (mark.words, mark.details, *texts))


def figure_texts(figure: Any) -> Iterator[str]:
    if isinstance(figure, HeadHeatmaps):
        yield figure.alt
    elif isinstance(figure, HeadTable):
        yield figure.alt
        yield from (text for column in figure.columns for text in (column.label, column.description))
    elif isinstance(figure, ModelMap):
        yield figure.alt
        yield from (text for part in figure.parts for text in (part.hover_text, part.label))
        yield from (word.text for sheet in figure.sheets for word in sheet.labels)
    elif isinstance(figure, WholeModelFigure):
        yield figure.alt
        yield from (label for _kind, label, _value in figure.terms)
        cell = (figure.open or {}).get("cell") or {"steps": []}
        yield from (step["name"] for step in cell["steps"])
    else:
        yield from json_texts(json.loads(figure.to_json()))


def json_texts(content: Any, is_read: bool = False) -> Iterator[str]:
    """Yield the texts of a figure's JSON, without its template, which names only fonts."""
    if isinstance(content, str) and is_read:
        yield content
    if isinstance(content, dict):
        for name, value in content.items():
            if name != "template":
                yield from json_texts(value, name in READ_KEYS)
    if isinstance(content, list):
        for value in content:
            yield from json_texts(value, is_read)


def inspection_texts(page: Page) -> Iterator[tuple[str, str]]:
    """Yield the explanations of clicked numbers, without code, tokens and names (`CODE`)."""
    endpoints = BrowserEndpoints(page.actions.state_builder.runs)
    for query in INSPECTION_QUERIES:
        for view in VIEWS:
            state = page.actions.parse_query(query | {"view": view.name})
            for panel in view.panels:
                for point in POINTS:
                    try:
                        explanation = endpoints.inspect(
                            state.as_dict(), shared_constants.element_id(view.name, panel.name), point
                        )
                    except PointNotFoundError:  # the page shows its own message
                        continue
                    yield from (
                        (f"{view.name}-{panel.name} {point}", CODE.sub("", line)) for line in explanation.splitlines()
                    )
