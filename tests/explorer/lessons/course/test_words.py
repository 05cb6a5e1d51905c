"""Markdown as a tree of plain data."""

import pytest

from explorer.lessons.course.words import parts, tree, values_in, with_values


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("plain", ["plain"]),
        ("a **b** c", ["a ", {"kind": "strong", "parts": ["b"]}, " c"]),
        ("*a* and _b_", [{"kind": "emphasis", "parts": ["a"]}, " and ", {"kind": "emphasis", "parts": ["b"]}]),
        ("`x * y * z`", [{"kind": "code", "text": "x * y * z"}]),
        ("snake_case_name and 2 * 3 * 4", ["snake_case_name and 2 * 3 * 4"]),
        ("**a *b* c**", [{"kind": "strong", "parts": ["a ", {"kind": "emphasis", "parts": ["b"]}, " c"]}]),
        ("is {share} of it", ["is ", {"kind": "value", "name": "share"}, " of it"]),
        ("<b onclick=x>&amp;</b>", ["<b onclick=x>&amp;</b>"]),
        ("[a](javascript:b)", ["[a](javascript:b)"]),
    ],
)
def test_what_stands_out_in_a_line(text, found):
    assert parts(text) == found


def test_blocks():
    assert tree(
        "one\ntwo\n\n- a\n  b\n- c\n\n1. d\n2. e\n\n| x | y |\n| --- | --- |\n| 1 | **2** |\n\n```\n<i>\n```"
    ) == [
        {"kind": "paragraph", "parts": ["one two"]},
        {"kind": "list", "ordered": False, "items": [["a b"], ["c"]]},
        {"kind": "list", "ordered": True, "items": [["d"], ["e"]]},
        {"kind": "table", "head": [["x"], ["y"]], "rows": [[["1"], [{"kind": "strong", "parts": ["2"]}]]]},
        {"kind": "code", "text": "<i>"},
    ]


def test_numbers_are_put_in_as_text():
    found = tree("- is **{a}**\n\n{b}")
    assert list(values_in(found)) == ["a", "b"]
    told = with_values(found, {"a": "1", "b": "<2>"}.__getitem__)
    assert list(values_in(told)) == []
    assert told[1] == {"kind": "paragraph", "parts": [{"kind": "number", "text": "<2>"}]}
