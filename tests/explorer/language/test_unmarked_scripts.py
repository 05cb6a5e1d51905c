"""No sentence of the page's scripts is out of a translator's sight."""

import re

import pytest

from explorer.web.assets import WEB, modules
from tests.unmarked_scripts import misused, unmarked

INLINE = [path.relative_to(WEB).as_posix() for path in (WEB / "inline").iterdir()]
SOURCES = {name: (WEB / name).read_text(encoding="utf-8") for name in (*modules(WEB), *INLINE)}
# What is no sentence of ours, by file.
STYLE = re.search(r'STYLE = "(.+?)"', SOURCES["inline/incomplete.js"])[1]
EXCEPTIONS = {
    "inline/incomplete.js": {STYLE: "a style"},
    "static/narrow.js": {"middle right": "Plotly's"},
    "static/term_marks.js": {
        "#branches :is(.legend, thead th)": "a selector",
        ":is(.choosers, .what-ifs, .tools) label > span": "a selector",
    },
    "widgets/model_map/drawing.js": {
        "frame {}": "names of classes",
        "part {}": "names of classes",
        "word {} {}": "names of classes",
    },
    "widgets/model_map/model_map.js": {"told {}": "names of classes"},
}


def test_every_sentence_is_marked():
    found = {name: set(unmarked(text)) for name, text in SOURCES.items()}
    assert {name: texts for name, texts in found.items() if texts} == {k: set(v) for k, v in EXCEPTIONS.items()}


def test_every_mark_is_a_whole_sentence_with_named_values():
    found = {name: misused(text) for name, text in SOURCES.items()}
    [own] = found.pop("inline/incomplete.js")  # which needs its messages before the module comes
    assert own.endswith("names another thing _")
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    "line",
    [
        'say(node, "two words");',
        "const told = 'two words';",
        "say(node, `${n} tokens`);",
        'make("button", { title: "two words" }, "×");',
        'say(node, isOne ? "one token" : _("many tokens"));',
        'say(node, _("a token") + " or two");',
        'ngettext("{count} token", "{count} tokens", n, { of: "two words" });',
    ],
)
def test_a_sentence_without_a_mark_is_found(line):
    assert unmarked(line)


@pytest.mark.parametrize(
    "line",
    [
        "// two words\n/* two words */",
        'import { _ } from "./language.js";',
        'say(node, _("two words"));',
        'say(node, _("looks at {token}", { token }));',
        'ngettext("{count} token", "{count} tokens", n);',
        'find(box, "td, th").closest(".two words");',
        'make("div", { className: "told" }, `${n}`);',
        "const isTwo = /two words/.test(text);",
    ],
)
def test_what_no_visitor_reads_needs_no_mark(line):
    assert unmarked(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "_(`${n} tokens`)",
        "_(message)",
        '_("a " + b)',
        '_("{n} tokens", { count: n })',
        '_("{n} of {all} tokens", { n })',
        'ngettext("{count} tokens", "{count} tokens", n)',
        'ngettext("{count} token", "{count} {kind} tokens", n)',
        'ngettext("{count} token", plural, n)',
        "all.map((_, i) => i)",
    ],
)
def test_a_mark_that_a_translator_cannot_work_with_is_found(line):
    assert misused(line)


@pytest.mark.parametrize(
    "line",
    [
        '_("looks at {token}")',
        '_("{n} of {all} tokens", { n, all: f(1, 2) })',
        '_("{n} tokens", row)',
        'ngettext("{count} token", "{count} tokens", n)',
        'ngettext("{count} {kind} token", "{count} {kind} tokens", n, { kind })',
        "export const _ = (message, values) => message;",
    ],
)
def test_a_mark_that_a_translator_can_work_with_is_none(line):
    assert misused(line) == []
