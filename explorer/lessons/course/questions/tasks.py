"""Something to be done on the page: whether it is done, the page's present state says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.analysis.heads import SCORE_NAMES
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.lessons.course.blocks import Fields, at, taken
from explorer.lessons.course.conditions import Condition, condition
from explorer.lessons.course.look import Look
from explorer.lessons.course.measures import prediction
from explorer.lessons.course.quantities import Quantity


@dataclass(frozen=True)
class Done:
    """Whether a task is done, and what is found in a sentence."""

    is_done: bool
    words: str


@dataclass(frozen=True)
class FindHead:
    """The chosen head has a score of at least so much."""

    score: str
    at_least: float

    def done(self, step: Look, now: Look) -> Done:
        s, found = now.selection, Quantity("head_score", {"score": self.score}).at(now)
        told = {"layer": s.layer, "head": s.head, "score": number(found), "least": number(self.at_least)}
        words = _("You chose layer {layer} head {head}: its score is {score}; {least} is asked for.", **told)
        return Done(found >= self.at_least, words)


@dataclass(frozen=True)
class FindPrompt:
    """A text of the visitor's own for which something holds."""

    when: Condition

    def done(self, step: Look, now: Look) -> Done:
        if now.run.token_ids == step.run.token_ids:
            return Done(False, _("This is still the text of the lesson: change it, and press Run."))
        holds = self.when.holds(now)
        return Done(holds, _("It holds for your text.") if holds else _("It does not hold for this text yet."))


@dataclass(frozen=True)
class SilenceHeads:
    """With heads silenced, and nothing else changed, another token than before is the likeliest."""

    most: int

    def done(self, step: Look, now: Look) -> Done:
        edits, vocabulary = now.run.edits, now.trace.vocabulary
        silenced = [edit for edit in edits if str(edit).partition(".attn.z.")[2].endswith("*zero")]
        if not edits:
            return Done(False, _("No head is silenced yet."))
        if len(silenced) < len(edits):
            return Done(False, _("Something else is changed than heads that are silenced."))
        if len(silenced) > self.most:
            return Done(False, _("{count} heads are silenced; {most} must do.", count=len(silenced), most=self.most))
        before = prediction(now.but({"edits": ""})).top(1)[0]
        after = prediction(now).top(1)[0]
        told = {"before": quoted(vocabulary[before]), "after": quoted(vocabulary[after])}
        if before == after:
            return Done(False, _("{before} is still the likeliest token.", before=told["before"]))
        return Done(True, _("{before} was the likeliest token; now it is {after}.", **told))


Task = FindHead | FindPrompt | SilenceHeads


def _find_head(given: Fields) -> FindHead:
    taken(given, {"score": str, "at_least": float}, ("score", "at_least"))
    with at(given.lines["score"]):
        if given["score"] not in SCORE_NAMES:
            raise ValueError(f"“score” is one of {', '.join(SCORE_NAMES)}, got {given['score']!r:.60}")
    return FindHead(given["score"], float(given["at_least"]))


def _find_prompt(given: Fields) -> FindPrompt:
    return FindPrompt(condition(given, given.line))


def _silence_heads(given: Fields) -> SilenceHeads:
    taken(given, {"most": int}, ("most",))
    with at(given.line):
        if given["most"] < 1:
            raise ValueError(f"“most” is how many heads may be silenced, got {given['most']}")
    return SilenceHeads(given["most"])


TASKS: dict[str, Callable[[Fields], Any]] = {
    "find_head": _find_head,
    "find_prompt": _find_prompt,
    "silence_heads": _silence_heads,
}
