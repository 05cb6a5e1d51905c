"""Which token comes at a rank."""

from dataclasses import dataclass
from typing import Any

from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.lessons.course.blocks import Fields, Items, at, taken
from explorer.lessons.course.look import Look
from explorer.lessons.course.measures import prediction
from explorer.lessons.course.questions.judged import Judged

SHOWN, MOST_CHARACTERS = 5, 40


@dataclass(frozen=True)
class TopToken:
    """The reply is a word, with or without the space before it.

    Attributes:
        rank: of the token that is asked for.
        options: words to choose from; with none any may be written.
    """

    rank: int
    options: tuple[str, ...] = ()

    def asked(self, look: Look) -> dict[str, Any]:
        return {"kind": "token", "options": list(self.options)}

    def judged(self, look: Look, reply: str | None) -> Judged | None:
        found, vocabulary = prediction(look), look.trace.vocabulary
        truth = int(found.top(self.rank)[-1])
        shown = [int(token_id) for token_id in found.top(max(SHOWN, self.rank))]
        given = None
        if reply is not None:
            word = reply.strip()
            if not word or len(reply) > MOST_CHARACTERS:
                return None
            same = [i for i, text in enumerate(vocabulary) if as_word(text) == as_word(word)]
            given = max(same, key=lambda token_id: found.plain[token_id], default=None)
            shown += [given] if given is not None and given not in shown else []
        bars = [
            {"token": vocabulary[i], "share": float(found.plain[i]), "number": number(found.plain[i])} for i in shown
        ]
        marks = {"bars": bars, "right": shown.index(truth), "yours": shown.index(given) if given is not None else None}
        told = {"token": quoted(vocabulary[truth]), "probability": number(found.plain[truth])}
        words = _("The run says {token}, with probability {probability}.", **told)
        if reply is None:
            return Judged(None, words, marks)
        if given is None:
            none = _("{word} is no single token of this model.", word=quoted(reply.strip()))
            words = f"{none} {words}"
        elif given != truth:
            place = {"token": quoted(vocabulary[given]), "rank": found.rank(given)}
            words = " ".join((words, _("It gives {token} place {rank:,}.", **place)))
        return Judged(given == truth, words, marks)

    def counted(self, reply: str) -> str | None:
        word = as_word(reply)
        return word if word.strip() and len(reply) <= MOST_CHARACTERS and word.isprintable() else None


def as_word(text: str) -> str:
    """What of a token a person would write."""
    return text.strip().casefold() or text


def top_token(ask: Fields, check: Fields | None) -> TopToken:
    """Of a lesson's blocks; LessonError where it is none."""
    given = check["top_token"]
    with at(check.lines["top_token"]):
        if not isinstance(given, Fields):
            raise ValueError(f"“top_token” is a mapping with “rank”, got {given!r:.60}")
    taken(given, {"rank": int}, ("rank",))
    with at(given.line):
        if not 1 <= given["rank"] <= 20:
            raise ValueError(f"“rank” is 1 to 20, got {given['rank']}")
    options = ask.get("options", Items())
    with at(ask.line):
        if not all(isinstance(option, str) for option in options):
            raise ValueError("the “options” of a token are texts")
    return TopToken(given["rank"], tuple(options))
