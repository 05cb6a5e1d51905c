"""Questions for the token at a rank."""

from dataclasses import dataclass
from typing import Any

from explorer.explain.notation import format_number, quote_token
from explorer.lessons.course.evaluation_context import EvaluationContext
from explorer.lessons.course.measures import predict_next_token
from explorer.lessons.course.questions.question import Grade
from explorer.lessons.course.yaml_blocks import (
    ListWithLines,
    MappingWithLines,
    errors_as_lesson_errors,
    validate_fields,
)
from explorer.translations import _

NUM_SHOWN_TOKENS, MAX_CHARS = 5, 40


@dataclass(frozen=True)
class TokenQuestion:
    """A question for a token; the reply is a word, with or without the space before it.

    Attributes:
        rank: of the token.
        options: words to choose from; empty for any word.
    """

    rank: int
    options: tuple[str, ...] = ()

    def prompt_payload(self, context: EvaluationContext) -> dict[str, Any]:
        return {"kind": "token", "options": list(self.options)}

    def grade(self, context: EvaluationContext, reply: str | None) -> Grade | None:
        next_token, vocabulary = predict_next_token(context), context.trace.vocabulary
        truth = int(next_token.top(self.rank)[-1])
        token_ids = [int(token_id) for token_id in next_token.top(max(NUM_SHOWN_TOKENS, self.rank))]
        reply_id = None
        if reply is not None:
            word = reply.strip()
            if not word or len(reply) > MAX_CHARS:
                return None
            same = [i for i, text in enumerate(vocabulary) if normalise_word(text) == normalise_word(word)]
            reply_id = max(same, key=lambda token_id: next_token.plain[token_id], default=None)
            token_ids += [reply_id] if reply_id is not None and reply_id not in token_ids else []
        bars = [
            {"token": vocabulary[i], "share": float(next_token.plain[i]), "number": format_number(next_token.plain[i])}
            for i in token_ids
        ]
        payload = {
            "bars": bars,
            "right": token_ids.index(truth),
            "yours": token_ids.index(reply_id) if reply_id is not None else None,
        }
        values = {"token": quote_token(vocabulary[truth]), "probability": format_number(next_token.plain[truth])}
        verdict = _("The run says {token}, with probability {probability}.", **values)
        if reply is None:
            return Grade(None, verdict, payload)
        if reply_id is None:
            none = _("{word} is no single token of this model.", word=quote_token(reply.strip()))
            verdict = f"{none} {verdict}"
        elif reply_id != truth:
            ranking = {"token": quote_token(vocabulary[reply_id]), "rank": next_token.rank(reply_id)}
            verdict = " ".join((verdict, _("It gives {token} place {rank:,}.", **ranking)))
        return Grade(reply_id == truth, verdict, payload)

    def tally_key(self, reply: str) -> str | None:
        word = normalise_word(reply)
        return word if word.strip() and len(reply) <= MAX_CHARS and word.isprintable() else None


def normalise_word(text: str) -> str:
    """Return a word stripped and case-folded for comparison, or the text itself if it is only spaces."""
    return text.strip().casefold() or text


def parse_token_question(ask: MappingWithLines, check: MappingWithLines | None) -> TokenQuestion:
    """Parse a token question from a lesson's blocks; LessonError where they are invalid."""
    spec = check["top_token"]
    with errors_as_lesson_errors(check.lines["top_token"]):
        if not isinstance(spec, MappingWithLines):
            raise ValueError(f"“top_token” is a mapping with “rank”, got {spec!r:.60}")
    validate_fields(spec, {"rank": int}, ("rank",))
    with errors_as_lesson_errors(spec.line):
        if not 1 <= spec["rank"] <= 20:
            raise ValueError(f"“rank” is 1 to 20, got {spec['rank']}")
    options = ask.get("options", ListWithLines())
    with errors_as_lesson_errors(ask.line):
        if not all(isinstance(option, str) for option in options):
            raise ValueError("the “options” of a token are texts")
    return TokenQuestion(spec["rank"], tuple(options))
