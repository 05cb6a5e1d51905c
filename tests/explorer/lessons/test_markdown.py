"""Parsing of Markdown into plain data."""

from explorer.lessons.lesson import fill_placeholders, parse_inline, parse_markdown, placeholder_names
from tests.subtest_loops import subtest_each


@subtest_each(
    ("text", "found"),
    [
        ("plain", ["plain"]),
        ("a **b** c", ["a ", {"kind": "strong", "parts": ["b"]}, " c"]),
        (
            "看*值*，*查询*",
            ["看", {"kind": "emphasis", "parts": ["值"]}, "，", {"kind": "emphasis", "parts": ["查询"]}],
        ),
        ("*a* and _b_", [{"kind": "emphasis", "parts": ["a"]}, " and ", {"kind": "emphasis", "parts": ["b"]}]),
        ("`x * y * z`", [{"kind": "code", "text": "x * y * z"}]),
        ("snake_case_name and 2 * 3 * 4", ["snake_case_name and 2 * 3 * 4"]),
        ("**a *b* c**", [{"kind": "strong", "parts": ["a ", {"kind": "emphasis", "parts": ["b"]}, " c"]}]),
        ("is {share} of it", ["is ", {"kind": "value", "name": "share"}, " of it"]),
        ("<b onclick=x>&amp;</b>", ["<b onclick=x>&amp;</b>"]),
        ("[a](javascript:b)", ["[a](javascript:b)"]),
    ],
)
def test_inline_markup_is_parsed(text, found):
    assert parse_inline(text) == found


def test_blocks_are_parsed():
    assert parse_markdown(
        "one\ntwo\n\n- a\n  b\n- c\n\n1. d\n2. e\n\n| x | y |\n| --- | --- |\n| 1 | **2** |\n\n```\n<i>\n```"
    ) == [
        {"kind": "paragraph", "parts": ["one two"]},
        {"kind": "list", "ordered": False, "items": [["a b"], ["c"]]},
        {"kind": "list", "ordered": True, "items": [["d"], ["e"]]},
        {"kind": "table", "head": [["x"], ["y"]], "rows": [[["1"], [{"kind": "strong", "parts": ["2"]}]]]},
        {"kind": "code", "text": "<i>"},
    ]


def test_placeholders_are_filled_as_text():
    tree = parse_markdown("- is **{a}**\n\n{b}")
    assert list(placeholder_names(tree)) == ["a", "b"]
    filled = fill_placeholders(tree, {"a": "1", "b": "<2>"}.__getitem__)
    assert list(placeholder_names(filled)) == []
    assert filled[1] == {"kind": "paragraph", "parts": [{"kind": "number", "text": "<2>"}]}
