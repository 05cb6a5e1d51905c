"""Grading of replies, and the truth given with it."""

import json
import re
from itertools import product

import numpy as np
import pytest

from explorer.analysis.next_token import surprisal
from explorer.explain.notation import escape_token, format_number
from explorer.lessons.lesson import parse_lesson
from explorer.lessons.quantities import format_answer_number
from tests.subtest_loops import subtest_each

from .conftest import lesson_text

QUESTIONS = {  # kind -> blocks, and a right and a wrong reply
    "choice": (
        """
        ```ask
        choice: More?
        options:
          - {says: less, when: {less: [{of: tokens}, 3]}}
          - {says: more, when: {more: [{of: tokens}, 3]}, shows: {of: tokens}}
        ```
        """,
        "2",
        "1",
    ),
    "token": ("\n```ask\ntoken: Which?\n```\n\n```check\ntop_token: {rank: 1}\n```\n", "the", "cat"),
    "cell": (
        "\n```ask\ncell: Which?\n```\n\n```check\nargmax_cell: {of: {of: weight, layer: 1}}\n```\n",
        None,
        None,
    ),
    "number": (
        "\n```ask\nnumber: How many?\nfrom: 0\nto: 20\n```\n\n```check\nnumber: {of: {of: tokens}, within: 1}\n```\n",
        "8.5",
        "10.5",
    ),
    "curve": (
        """
        ```ask
        curve: How?
        from: 0
        to: 1
        ```

        ```check
        curve: {of: {of: weight, layer: 1}, over: {key: [0, 7, 8]}, within: 0.1}
        ```
        """,
        None,
        "0.5_0.5_9",
    ),
    "blanks": (
        "\n```ask\nblanks: Fill in.\n```\n\n```check\nworking: {of: score, blanks: all}\n```\n",
        None,
        "1_2_3",
    ),
}


def make_question(kind: str):
    return parse_lesson("a", lesson_text(QUESTIONS[kind][0])).steps[0].question


def right_reply(kind: str, context) -> str:
    """Return a right reply, computed from the trace if `QUESTIONS` has none."""
    pattern = context.trace["blocks.1.attn.pattern"][0].astype(float)
    if kind == "cell":
        return "_".join(map(str, np.unravel_index(np.tril(pattern).argmax(), pattern.shape)))
    if kind == "curve":
        return "_".join(f"{pattern[8, key]:.3f}" for key in (0, 7, 8))
    if kind == "blanks":
        q, k = (context.trace[f"blocks.0.attn.{name}_rot"][0].astype(float) for name in "qk")
        dot = q[8] @ k[7]
        return "_".join(f"{value:.3g}" for value in (dot, np.sqrt(32), dot / np.sqrt(32)))
    return QUESTIONS[kind][1]


@subtest_each("kind", QUESTIONS)
def test_right_reply_is_right(plain_context, kind):
    judged = make_question(kind).grade(plain_context, right_reply(kind, plain_context))
    assert judged.is_right is True


@subtest_each("kind", QUESTIONS)
def test_wrong_reply_is_wrong(plain_context, kind):
    reply = QUESTIONS[kind][2] or ("0_0" if right_reply(kind, plain_context) != "0_0" else "1_0")
    assert make_question(kind).grade(plain_context, reply).is_right is False


@subtest_each("kind", QUESTIONS)
@subtest_each("reply", ["", "_", "x", "-1", "99", "1_1_1_1_1_1_1_1_1", "nan", "inf", "<b>", "٣", "9" * 200])
def test_invalid_reply_is_not_graded(plain_context, kind, reply):
    judged = make_question(kind).grade(plain_context, reply)
    if kind == "token" and reply.strip() and len(reply) < 40:
        assert not judged.is_right
    elif kind == "number" and reply in ("-1", "99", "٣"):
        assert judged.is_right is False
    else:
        assert judged is None


OPTION_WITH_QUOTES = """
```ask
choice: Nearer?
options:
  - {says: that of “the”., when: {more: [{of: cosine, a: "e", b: "e"}, 0]}, shows: {of: cosine, a: "e", b: "e"}}
  - {says: none, when: {less: [{of: cosine, a: "e", b: "e"}, 0]}, shows: {of: cosine, a: "e", b: "e"}}
```
"""


def test_option_keeps_its_own_quotes_and_bars_of_cosines_end_at_1(plain_context):
    question = parse_lesson("a", lesson_text(OPTION_WITH_QUOTES)).steps[0].question
    judged = question.grade(plain_context, "1")
    assert judged.text == "The answer is that of “the”."
    assert judged.truth["are_shares"] is True


def test_grade_quotes_option_and_omits_zero_error(plain_context):
    choice, number = make_question("choice"), make_question("number")
    judged = choice.grade(plain_context, "2")
    assert judged.text.startswith(f"The answer is “{choice.options[1].text.rstrip('.')}”: The + ")
    right = number.grade(plain_context, str(len(plain_context.trace))).text
    assert "off by" not in right and " + ".join(map(escape_token, plain_context.trace.tokens)) in right
    assert format_answer_number(1.0) == "1"
    assert "off by" in number.grade(plain_context, str(len(plain_context.trace) + 1)).text
    ranking, vocabulary = plain_context.trace.logits.row(-1).argsort()[::-1], plain_context.trace.vocabulary
    words = [vocabulary[i].strip().casefold() for i in ranking]
    unlikely = next(word for word in reversed(words) if word and words.count(word) == 1)
    judged = make_question("token").grade(plain_context, unlikely)
    *ranks, last = (bar["rank"] for bar in judged.truth["bars"])
    assert ranks == list(range(1, len(ranks) + 1)) and f"place {last:,}." in judged.text


@subtest_each("kind", QUESTIONS)
def test_truth_is_given_without_reply(plain_context, kind):
    judged = make_question(kind).grade(plain_context, None)
    assert judged.is_right is None and judged.truth


@pytest.mark.parametrize(
    "kind", [kind for kind in QUESTIONS if kind != "blanks"]
)  # whose given rows depend on the text
def test_question_does_not_reveal_truth(plain_context, kind):
    """A text with another truth gives the same question; a heatmap also has the text's tokens."""
    text = "The cat saw the dog. The cat saw" if kind == "cell" else "One two three four five six seven, and on and on"
    other = plain_context.replace({"text": text, "query": 8, "key": 7})
    payload, other_payload = (
        json.dumps(make_question(kind).prompt_payload(context)) for context in (plain_context, other)
    )
    assert payload.replace("dog (7)", "cat (7)") == other_payload


@subtest_each("kind", QUESTIONS)
@pytest.mark.exhaustive
def test_grading_is_deterministic(get_context, kind):
    lesson = parse_lesson("a", lesson_text(QUESTIONS[kind][0]))
    replies = (right_reply(kind, get_context(lesson)), None)
    results = {
        json.dumps([vars(lesson.steps[0].question.grade(get_context(lesson), r)) for r in replies]) for _ in range(100)
    }
    assert len(results) == 1


def test_largest_cell_is_not_masked(plain_context):
    judged = make_question("cell").grade(plain_context, None)
    assert all(value is None for i, row in enumerate(judged.truth["values"]) for value in row[i + 1 :])
    assert make_question("cell").grade(plain_context, "0_5") is None


def test_heatmap_rows_can_be_chosen(plain_context):
    check = "argmax_cell: {of: {of: head_score, score: previous_token}, rows: layer, columns: head}"
    question = parse_lesson("a", lesson_text(f"\n```ask\ncell: W?\n```\n\n```check\n{check}\n```\n")).steps[0].question
    pattern = plain_context.trace.stack("blocks.*.attn.pattern")
    scores = pattern[:, :, range(1, 9), range(8)].mean(-1)
    judged = question.grade(plain_context, "_".join(map(str, np.unravel_index(scores.argmax(), scores.shape))))
    assert judged.is_right
    assert len(question.prompt_payload(plain_context)["rows"]) == 6


@subtest_each("blanks", ["none", "one", "all"])
@subtest_each(
    ("of", "state"),
    [
        ("score", ""),
        ("softmax_row", ", query: 2"),
        ("rmsnorm", ", dim: 3"),
        ("swiglu_neuron", ", neuron: 5"),
        ("rotation", ", dim: 1"),
        ("temperature_top_k", ", top_k: 3, temperature: 0.5"),
    ],
)
def test_workings_match_run(plain_context, of, state, blanks):
    check = f"working: {{of: {of}, blanks: {blanks}{state}}}"
    question = (
        parse_lesson("a", lesson_text(f"\n```ask\nblanks: B?\n```\n\n```check\n{check}\n```\n")).steps[0].question
    )
    rows, judged = question.prompt_payload(plain_context)["rows"], question.grade(plain_context, None)
    hidden = [row for row in rows if row["value"] is None]
    assert len(hidden) == len(judged.truth["truth"]) and bool(hidden) == (blanks != "none")
    if blanks == "one":
        assert len(hidden) == 1 and rows[-1]["value"] is None
    given = [row["value"] for row in rows if row["value"] is not None]
    numbers_in_texts = {number for row in rows for number in re.findall(r"\d[\d.]*", row["says"])}
    assert not numbers_in_texts & {*judged.truth["truth"]} - {*given, "1"}  # e^0 is not hidden
    trace, (last,) = plain_context.trace, judged.truth["truth"][-1:] or [rows[-1]["value"]]
    run = {
        "score": lambda: trace["blocks.0.attn.scores"][0, 8, 7],
        "softmax_row": lambda: trace["blocks.0.attn.pattern"][0, 2, 2],
        "rmsnorm": lambda: trace["blocks.0.attn_norm"][8, 3],
        "swiglu_neuron": lambda: trace["blocks.0.ffn.hidden"][8, 5],
        "rotation": lambda: trace["blocks.0.attn.q_rot"][0, 8, 3],
        "temperature_top_k": lambda: softmax(np.sort(trace["logits"][8])[-3:] / 0.5)[0],
    }
    assert float(last.replace("−", "-")) == pytest.approx(run[of](), rel=6e-3, abs=6e-4)


def test_reply_computed_from_digits_shown_is_right(plain_context):
    """In every head, from the given numbers alone as the page shows them; a wrong reply is told the calculation."""
    from_shown = {
        "score": lambda above, below, d, *_: (above + below) / np.sqrt(d),
        "softmax_row": lambda *shown: softmax(np.array(shown[:3]))[-1],
        "rotation": lambda a, b, angle, *_: a * np.sin(angle) + b * np.cos(angle),
    }
    hints = {"score": "score = q·k / √d = ", "softmax_row": "share of ", "rotation": "a · sin + b · cos = "}
    wrong = []
    for (name, compute), layer, head in product(from_shown.items(), range(6), range(6)):
        check = f"working: {{of: {name}, blanks: one, query: 2, key: 2, dim: 1, layer: {layer}, head: {head}}}"
        text = lesson_text(f"\n```ask\nblanks: B?\n```\n\n```check\n{check}\n```\n")
        question = parse_lesson("a", text).steps[0].question
        shown = [row["value"] for row in question.prompt_payload(plain_context)["rows"]]
        reply = compute(*(float(number.replace("−", "-")) for number in shown[:-1]))
        wrong += [] if question.grade(plain_context, str(reply)).is_right else [(name, layer, head, reply, shown)]
        grade = question.grade(plain_context, str(reply + 1))
        assert not grade.is_right and hints[name] in grade.text and grade.truth["truth"][0] in grade.text
    assert not wrong


def softmax(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


TASK = "\n```check\n%s\n```\n"


def test_find_head_task_checks_selected_head(plain_context):
    task = parse_lesson("a", lesson_text(TASK % "find_head: {score: previous_token, at_least: 0.5}")).steps[0].task
    scores = plain_context.trace.stack("blocks.*.attn.pattern")[:, :, range(1, 9), range(8)].mean(-1)
    for pick, is_done in ((scores.argmax(), True), (scores.argmin(), False)):
        layer, head = np.unravel_index(pick, scores.shape)
        done = task.check(plain_context, plain_context.replace({"layer": int(layer), "head": int(head)}))
        assert done.is_done is is_done and f"layer {layer} head {head}" in done.text


def test_find_prompt_task_checks_prompt(plain_context):
    task = parse_lesson("a", lesson_text(TASK % "find_prompt: {less: [{of: tokens}, 4]}")).steps[0].task
    assert not task.check(plain_context, plain_context).is_done
    assert task.check(plain_context, plain_context.replace({"text": "One two"})).is_done
    assert not task.check(plain_context, plain_context.replace({"text": "One two three four five"})).is_done


def test_find_prompt_task_names_failed_condition(plain_context):
    conditions = "{all: [{less: [{of: tokens}, 7]}, {more: [{of: tokens}, 4]}, {more: [{of: mean_surprisal}, %s]}]}"
    task = parse_lesson("a", lesson_text(TASK % f"find_prompt: {conditions % 0.1}")).steps[0].task
    few = plain_context.replace({"text": "One two"})
    count = len(few.trace.tokens)
    assert (
        task.check(plain_context, few).text == f"It has {count} tokens; it needs 5 or 6. The surprisal is high enough."
    )
    enough = plain_context.replace(
        {
            "text": next(
                text
                for text in ("One" + " two" * n for n in range(9))
                if task.check(plain_context, plain_context.replace({"text": text})).is_done
            )
        }
    )
    bits = float(surprisal(enough.trace)[1:].mean())
    text = f"Well done: your text has a surprisal of {format_number(bits)} bits a token."
    assert task.check(plain_context, enough).text == text
    task = parse_lesson("a", lesson_text(TASK % f"find_prompt: {conditions % 90}")).steps[0].task
    assert "needs more than 90" in task.check(plain_context, few).text
    task = (
        parse_lesson("a", lesson_text(TASK % "find_prompt: {more: [{of: probability, rank: 1}, 0.9999]}")).steps[0].task
    )
    assert task.check(plain_context, few).text.startswith("The likeliest token has probability ")
    task = parse_lesson("a", lesson_text(TASK % "find_prompt: {more: [{of: probability, rank: 1}, 0]}")).steps[0].task
    assert "the likeliest token has probability " in task.check(plain_context, few).text


def test_find_prompt_task_rejects_lesson_prompt(plain_context):
    task = parse_lesson("a", lesson_text(TASK % "find_prompt: {more: [{of: tokens}, 4]}")).steps[0].task
    assert not task.check(plain_context, plain_context).is_done


def test_silence_heads_task_requires_other_top_token(plain_context):
    task = parse_lesson("a", lesson_text(TASK % "silence_heads: {most: 12}")).steps[0].task
    ablations = "~".join(f"blocks.{layer}.attn.z.{head}*zero" for layer in (0, 1) for head in range(6))
    top = {edits: plain_context.replace({"edits": edits}).trace["logits"][8].argmax() for edits in ("", ablations)}
    assert top[""] != top[ablations]
    assert task.check(plain_context, plain_context.replace({"edits": ablations})).is_done
    assert not task.check(plain_context, plain_context).is_done
    assert not task.check(plain_context, plain_context.replace({"edits": "blocks.0.attn.z.0*zero"})).is_done
    assert not task.check(
        plain_context, plain_context.replace({"edits": ablations + "~blocks.2.ffn.hidden*zero"})
    ).is_done
    fewer = parse_lesson("a", lesson_text(TASK % "silence_heads: {most: 11}")).steps[0].task
    assert not fewer.check(plain_context, plain_context.replace({"edits": ablations})).is_done
