"""Which of two runs is clean, which corrupted, and what is asked of them."""

from dataclasses import dataclass

from explorer.analysis.next_token import ranking
from explorer.explain.notation import quoted
from explorer.language import N_, _
from explorer.state.alignment import Alignment, aligned
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.donation import whole_patterns_alone
from explorer.tracing.patching_question import DIRECTIONS, PatchingQuestion
from explorer.tracing.trace import Trace
from explorer.views.two_runs.difference import Incomparable

ONE_PROMPT = N_(
    "Patching takes two prompts with different answers: begin with one of the pairs above, in one click, or compare "
    "with another prompt of your own."
)


@dataclass(frozen=True)
class TwoPrompts:
    """Both prompts, each read without changes.

    Attributes:
        question: what is asked of them.
        clean, corrupted: their runs, of whatever comes after the prompts as well.
        clean_is: which of the page's runs is clean, "a" or "b".
        alignment: of the prompts' tokens, A's first.
    """

    question: PatchingQuestion
    clean: Trace
    corrupted: Trace
    clean_is: str
    alignment: Alignment

    @property
    def tokens(self) -> tuple[str, ...]:
        """Of the clean prompt."""
        return self.clean.tokens[: len(self.question.clean)]

    def in_clean(self, position: int) -> int:
        """The position of the clean prompt that stands for one of A, or for the nearest before it."""
        place = position if self.clean_is == "a" else self.alignment.nearest(position)
        return min(place, len(self.tokens) - 1)

    @property
    def answer_in_a(self) -> int:
        """The position in A that the answer comes after."""
        return len(self.question.clean if self.clean_is == "a" else self.question.corrupted) - 1

    @property
    def lone(self) -> tuple[int, ...]:
        """Positions of the clean prompt between which and the other no value goes over, in either direction."""
        return tuple(
            at
            for at, both in enumerate(zip(*map(self.question.put_at, DIRECTIONS), strict=True))
            if both == (None, None)
        )

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
    texts = [tuple(trace.vocabulary[token_id] for token_id in prompt) for prompt in (ids, other_ids)]
    alignment = aligned(*texts, runs.pins)
    if alignment.kind == "none":
        raise Incomparable(
            _("No token of one prompt stands beside one of the other: put two tokens together above first.")
        )
    plain = [run.baseline or run for run in runs.runs]
    both = {"a": (plain[0], ids), "b": (plain[1], other_ids)}
    other_run = "a" if selection.clean_run == "b" else "b"
    (clean, clean_ids), (corrupted, corrupted_ids) = both[selection.clean_run], both[other_run]
    after_clean = ranking(clean, len(clean_ids) - 1)
    after_corrupted = ranking(corrupted, len(corrupted_ids) - 1)
    answer = named(clean, selection.answer, int(after_clean[0]))
    proposed = next(int(token_id) for token_id in after_corrupted if token_id != answer)
    wrong = named(clean, selection.wrong, proposed)
    if answer == wrong:
        raise Incomparable(_("The answer and the wrong answer are the same token: choose two that differ."))
    taken_by = {"a": alignment, "b": aligned(*texts[::-1], tuple((b, a) for a, b in runs.pins))}
    partners = tuple(taken_by[run].partners for run in (other_run, selection.clean_run))  # of whom values are put into
    question = PatchingQuestion(
        trace.model, clean_ids, corrupted_ids, answer, wrong, (None, None) if alignment.is_identity else partners
    )
    return TwoPrompts(question, clean, corrupted, selection.clean_run, alignment)


def prompts_for(runs: Comparison, selection: Selection, part: str) -> TwoPrompts:
    """Incomparable where values of the part cannot go over between the prompts."""
    two = two_prompts(runs, selection)
    if part == "attn.pattern" and not two.question.by_position:
        raise Incomparable(whole_patterns_alone(len(two.question.clean), len(two.question.corrupted)))
    return two


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
