"""A teacher's own question to the class: its bounds, and how the replies to it are counted."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from explorer.state.selection import parse_index
from explorer.web.request_validation import STRICT, Index

MAX_QUESTION_CHARS, MAX_ANSWER_CHARS = 200, 80  # an answer is one of the teacher's, or a student's own words
MIN_ANSWERS, MAX_ANSWERS = 2, 4
MAX_SHOWN_REPLIES = 20  # different ones that students get


class ClassQuestion(TypedDict):
    """A question that a teacher writes.

    Attributes:
        number: another one for each question of a room, so that no reply counts for the next question.
        text: the question.
        answers: those to choose from; empty if students reply in their own words.
        shows_replies: whether students get the counts of the replies.
    """

    __pydantic_config__ = STRICT

    number: Index
    text: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
    answers: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=MAX_ANSWER_CHARS)]], Field(max_length=MAX_ANSWERS)
    ]
    shows_replies: bool


def is_valid_question(question: Mapping[str, Any]) -> bool:
    """Return whether no text is blank, and there are no answers to choose from, or enough that differ."""
    answers = question["answers"]
    return all(map(str.strip, (question["text"], *answers))) and (
        not answers or (len(answers) >= MIN_ANSWERS and len(set(answers)) == len(answers))
    )


def own_question_key(question: Mapping[str, Any]) -> str:
    """Return the key of a teacher's question in the store; no lesson is named ""."""
    return f":{question['number']}"


def own_question_tally_key(question: Mapping[str, Any], reply: str) -> str | None:
    """Return the key under which equal replies are counted: an answer's number, or words; None for an invalid reply."""
    if answers := question["answers"]:
        chosen = parse_index(reply)
        return str(chosen) if chosen is not None and 1 <= chosen <= len(answers) else None
    words = " ".join(reply.split()).casefold()
    return words if 0 < len(words) <= MAX_ANSWER_CHARS else None
