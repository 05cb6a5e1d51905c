"""Keys under which the replies of a class are counted, independent of any run."""

from explorer.lessons.lesson import parse_lesson
from explorer.lessons.questions import NUM_BINS, bin_index
from tests.subtest_loops import subtest_each

from .conftest import lesson_text
from .test_questions import QUESTIONS, make_question

HOSTILE = ("", " ", "x" * 41, "<b>", "1_2_3_4", "9" * 12, "nan", "inf", "\n", "a\x00b", "½", "1__2", "_", "-1", "٣")
NARROW = """
```ask
cell: Which?
```

```check
argmax_cell: {of: {of: weight, layer: 1}, rows: {query: [5, 6]}, columns: head}
```
"""


@subtest_each(
    ("kind", "replies"),
    [
        ("choice", {"1": "1", "2": "2", "02": "2"}),
        ("token", {" The": "the", "the ": "the", "<b>": "<b>", "Ünder": "ünder"}),
        ("cell", {"0_0": "0_0", "23_7": "23_7", "07_1": "7_1"}),
        (
            "number",
            {"0": "0", "1.9": "0", "2": "1", "19.9": "9", "20": "9", "-3": "0", "99": "9", "−1": "0", "5,5": "2"},
        ),
        ("curve", {"0_0.5_1": "0_5_9", "0.09_0.1_9": "0_1_9"}),
        ("blanks", {"1_2.50_−3": "1_2.5_-3"}),
    ],
)
def test_equivalent_replies_have_same_key(kind, replies):
    assert {reply: make_question(kind).tally_key(reply) for reply in replies} == replies


@subtest_each("kind", QUESTIONS)
def test_invalid_reply_has_no_key(kind):
    keys = {reply: make_question(kind).tally_key(reply) for reply in HOSTILE}
    numbers = {"9" * 12, "-1", "٣"}
    accepted = {
        "number": numbers,
        "blanks": numbers | {"1_2_3_4"},
        "token": {"<b>", "1_2_3_4", "9" * 12, "nan", "inf", "½", "1__2", "_", "-1", "٣"},
    }
    assert {reply for reply, key in keys.items() if key is not None} == accepted.get(kind, set())
    assert all(key is None or key.isprintable() for key in keys.values())


def test_cell_outside_question_has_no_key():
    question = parse_lesson("a", lesson_text(NARROW)).steps[0].question
    assert (
        question.tally_key("1_23") == "1_23"
        and question.tally_key("2_0") is None
        and question.tally_key("0_24") is None
    )


def test_number_bins_have_equal_width():
    assert [bin_index(value / 10 + 0.05, 0, 1) for value in range(10)] == list(range(NUM_BINS))
    assert [bin_index(value, -1, 1) for value in (-9, -1, 0, 1, 9)] == [0, 0, 5, 9, 9]
