"""Which of two runs is clean, which corrupted, and what is asked of them."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.next_token import ranking
from explorer.explain.notation import quoted
from explorer.language import _
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching_question import PatchingQuestion
from explorer.tracing.trace import Trace
from explorer.views.two_runs.difference import Incomparable


@dataclass(frozen=True)
class TwoPrompts:
    """Both prompts, each read without changes.

    Attributes:
        question: what is asked of them.
        clean, corrupted: their runs, of whatever comes after the prompts as well.
        clean_is: which of the page's runs is clean, "a" or "b".
    """

    question: PatchingQuestion
    clean: Trace
    corrupted: Trace
    clean_is: str

    @property
    def tokens(self) -> tuple[str, ...]:
        """Of the clean prompt."""
        return self.clean.tokens[: len(self.question.clean)]

    def logits(self, is_clean: bool) -> np.ndarray:
        """(V,) captured after the end of either prompt."""
        return (self.clean if is_clean else self.corrupted)["logits"][len(self.question.clean) - 1]

    def patched_run(self, direction: str) -> str:
        """The field of the page's state with the changes of the run that values are put into."""
        into_a = (direction == "denoise") == (self.clean_is == "b")
        return "edits" if into_a else "b.edits"

    def word(self, token_id: int) -> str:
        return quoted(self.clean.vocabulary[token_id])


def two_prompts(runs: Comparison, selection: Selection) -> TwoPrompts:
    """What the comparison's runs are to each other.

    Raises:
        Incomparable: nothing can be put from one into the other place by place, or there is no such token.
    """
    (trace, other), (ids, other_ids) = runs.runs, runs.prompt_ids
    if trace.model != other.model:
        told = _("A and B are read by different models. Patching is between two prompts of one: compare with a prompt.")
        raise Incomparable(told)
    if len(ids) != len(other_ids):
        raise Incomparable(unequal(len(ids), len(other_ids)))
    plain = [run.baseline or run for run in runs.runs]
    both = {"a": (plain[0], ids), "b": (plain[1], other_ids)}
    other_run = "a" if selection.clean_run == "b" else "b"
    (clean, clean_ids), (corrupted, corrupted_ids) = both[selection.clean_run], both[other_run]
    after_clean, after_corrupted = (ranking(run, len(ids) - 1) for run in (clean, corrupted))
    answer = named(clean, selection.answer, int(after_clean[0]))
    proposed = next(int(token_id) for token_id in after_corrupted if token_id != answer)
    wrong = named(clean, selection.wrong, proposed)
    if answer == wrong:
        raise Incomparable(_("The answer and the wrong answer are the same token: choose two that differ."))
    question = PatchingQuestion(trace.model, clean_ids, corrupted_ids, answer, wrong)
    return TwoPrompts(question, clean, corrupted, selection.clean_run)


def unequal(count: int, other_count: int) -> str:
    """What to do with prompts of different lengths."""
    told = _(
        "Values go over position by position, so both prompts must have as many tokens: A has {a} and B has {b}. "
        "Make {longer} shorter by {by}, or {shorter} longer. Single values of tokens that have a partner can be taken "
        "as they are: in Experiments, “as in the other run”."
    )
    longer, shorter = ("A", "B") if count > other_count else ("B", "A")
    return told.format(a=count, b=other_count, longer=longer, shorter=shorter, by=abs(count - other_count))


def named(trace: Trace, text: str, proposed: int) -> int:
    """The token of a text, with a space before it where there is none other; the proposed one of no text."""
    text = text.replace("·", " ").replace("↵", "\n")
    if not text:
        return proposed
    vocabulary = list(trace.vocabulary)
    for form in (text, f" {text}"):
        if form in vocabulary:
            return vocabulary.index(form)
    told = _("“{text}” is no token of this model: choose one of the list, or write one as the next-token panel does.")
    raise Incomparable(told.format(text=text))
