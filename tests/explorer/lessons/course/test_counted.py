"""As what replies are counted among those of a class, without a look at any run."""

import pytest

from explorer.lessons.course.questions.judged import BINS, bin_of
from explorer.lessons.course.reading import lesson_of

from .conftest import written
from .test_questions import ASKS, made

HOSTILE = ("", " ", "x" * 41, "<b>", "1_2_3_4", "9" * 12, "nan", "inf", "\n", "a\x00b", "½", "1__2", "_", "-1", "٣")
NARROW = """
```ask
cell: Which?
```

```check
argmax_cell: {of: {of: weight, layer: 1}, rows: {query: [5, 6]}, columns: head}
```
"""


@pytest.mark.parametrize(
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
def test_replies_that_mean_the_same_are_counted_together(kind, replies):
    assert {reply: made(kind).counted(reply) for reply in replies} == replies


@pytest.mark.parametrize("kind", ASKS)
def test_what_is_no_reply_is_not_counted(kind):
    counted = {reply: made(kind).counted(reply) for reply in HOSTILE}
    numbers = {"9" * 12, "-1", "٣"}
    are = {
        "number": numbers,
        "blanks": numbers | {"1_2_3_4"},
        "token": {"<b>", "1_2_3_4", "9" * 12, "nan", "inf", "½", "1__2", "_", "-1", "٣"},
    }
    assert {reply for reply, given in counted.items() if given is not None} == are.get(kind, set())
    assert all(given is None or given.isprintable() for given in counted.values())


def test_a_cell_that_the_question_has_not_is_none():
    question = lesson_of("a", written(NARROW)).steps[0].question
    assert question.counted("1_23") == "1_23" and question.counted("2_0") is None and question.counted("0_24") is None


def test_numbers_are_counted_in_equal_parts():
    assert [bin_of(value / 10 + 0.05, 0, 1) for value in range(10)] == list(range(BINS))
    assert [bin_of(value, -1, 1) for value in (-9, -1, 0, 1, 9)] == [0, 0, 5, 9, 9]
