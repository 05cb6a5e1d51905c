"""All sentences in the page's scripts are marked for translation."""

import re

from explorer.web.assets import WEB, js_module_paths
from tests.subtest_loops import subtest_each
from tests.untranslated_scripts import find_misused_marks, find_unmarked

INLINE = [path.relative_to(WEB).as_posix() for path in (WEB / "inline").iterdir()]
SOURCES = {name: (WEB / name).read_text(encoding="utf-8") for name in (*js_module_paths(WEB), *INLINE)}
# Texts that need no translation, by file, with the reason.
STYLE = re.search(r'STYLE = "(.+?)"', SOURCES["inline/reload_incomplete_page.js"])[1]
EXCEPTIONS = {
    "inline/reload_incomplete_page.js": {STYLE: "a style"},
    "widgets/figure/figure_fit.js": {"middle right": "Plotly's"},
    "static/page.js": {"unknown: {}; select takes {}": "for who writes a script"},
    "static/glossary_terms.js": {
        "#branches :is(.legend, thead th)": "a selector",
        ":is(.choosers, .what-ifs, .tools) label > span": "a selector",
    },
    "static/history.js": {".plot:has(.main-svg), .drawing > svg, .map svg": "a selector"},
    "widgets/tokens/tokens.js": {"Step picks": "an entry of the glossary"},
    "widgets/teaching/lesson.js": {"(min-width: 601px) and (max-width: 1099px)": "a media query"},
    "widgets/figure/model_map.js": {
        "frame {}": "names of classes",
        "part {}": "names of classes",
        "word {} {}": "names of classes",
        "told {}": "names of classes",
    },
    "widgets/figure/whole_model.js": dict.fromkeys(
        (
            *("item {}", "block opened", "guess share", "shape {}", "switch here", "wire later", "curve {}"),
            *("ffn less", "answer share", "pattern here", "number {}", "name here", "bars {}", "value {}"),
            *("soft of-q", "soft of-k"),
        ),
        "names of classes",
    ),
}


def test_every_sentence_is_marked():
    unmarked_by_file = {name: set(find_unmarked(text)) for name, text in SOURCES.items()}
    assert {name: texts for name, texts in unmarked_by_file.items() if texts} == {
        k: set(v) for k, v in EXCEPTIONS.items()
    }


def test_marks_contain_whole_sentences_with_named_values():
    problems_by_file = {name: find_misused_marks(text) for name, text in SOURCES.items()}
    [inline_problem] = problems_by_file.pop(
        "inline/reload_incomplete_page.js"
    )  # this script needs its messages before modules load
    assert inline_problem.endswith("names another thing _")
    assert {name: wrong for name, wrong in problems_by_file.items() if wrong} == {}


@subtest_each(
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
def test_unmarked_sentence_is_found(line):
    assert find_unmarked(line)


@subtest_each(
    "line",
    [
        "// two words\n/* two words */",
        'import { _ } from "./text.js";',
        'say(node, _("two words"));',
        'say(node, _("looks at {token}", { token }));',
        'ngettext("{count} token", "{count} tokens", n);',
        'find(box, "td, th").closest(".two words");',
        'make("div", { className: "told" }, `${n}`);',
        "const isTwo = /two words/.test(text);",
    ],
)
def test_internal_text_needs_no_mark(line):
    assert find_unmarked(line) == []


@subtest_each(
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
def test_misused_mark_is_found(line):
    assert find_misused_marks(line)


@subtest_each(
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
def test_correct_mark_is_accepted(line):
    assert find_misused_marks(line) == []
