"""The clean and the corrupted prompt of a patching experiment."""

from dataclasses import dataclass

from explorer.analysis.next_token import ranking_without_interventions
from explorer.explain.notation import quote_token
from explorer.state.alignment import Alignment, align_tokens
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison, whole_patterns_only_message
from explorer.tracing.patching.experiment import DIRECTIONS, PatchingExperiment
from explorer.tracing.trace import Trace
from explorer.translations import N_, _
from explorer.views.two_runs import NoDifferenceError

ONE_PROMPT = N_(
    "Patching takes two prompts with different answers: begin with one of the pairs above, in one click, or compare "
    "with another prompt of your own."
)


@dataclass(frozen=True)
class PromptPairContext:
    """Two prompts, each with its run without interventions.

    Attributes:
        experiment: the patching experiment.
        clean, corrupted: their runs, with any tokens after the prompts.
        clean_run: the page's run that is clean, "a" or "b".
        alignment: of the prompts' tokens, A's first.
    """

    experiment: PatchingExperiment
    clean: Trace
    corrupted: Trace
    clean_run: str
    alignment: Alignment

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the clean prompt."""
        return self.clean.tokens[: len(self.experiment.clean)]

    def to_clean_position(self, position: int) -> int:
        """Return the position of the clean prompt aligned with one of A, or with the nearest before it."""
        clean_position = position if self.clean_run == "a" else self.alignment.nearest_aligned(position)
        return min(clean_position, len(self.tokens) - 1)

    @property
    def answer_in_a(self) -> int:
        """The position in A before the answer."""
        return len(self.experiment.clean if self.clean_run == "a" else self.experiment.corrupted) - 1

    @property
    def unaligned_positions(self) -> tuple[int, ...]:
        """Positions of the clean prompt that are patched in neither direction."""
        return tuple(
            position
            for position, targets in enumerate(zip(*map(self.experiment.target_positions, DIRECTIONS), strict=True))
            if targets == (None, None)
        )

    def patched_run_field(self, direction: str) -> str:
        """Return the field of the page's state with the interventions of the run that is patched."""
        into_a = (direction == "denoise") == (self.clean_run == "b")
        return "edits" if into_a else "b.edits"

    def token_text(self, token_id: int) -> str:
        """Return a token's text in quotes."""
        return quote_token(self.clean.vocabulary[token_id])


def make_prompt_pair(runs: Comparison, selection: Selection) -> PromptPairContext:
    """Return the comparison's runs as the clean and the corrupted prompt.

    Raises:
        NoDifferenceError: the runs are of different models, no tokens are aligned, or there is no such answer
            token.
    """
    (trace, other), (ids, other_ids) = runs.runs, runs.prompt_ids
    if trace.model != other.model:
        message = _(
            "A and B are read by different models. Patching is between two prompts of one: compare with a prompt."
        )
        raise NoDifferenceError(message)
    texts = [tuple(trace.vocabulary[token_id] for token_id in prompt) for prompt in (ids, other_ids)]
    alignment = align_tokens(*texts, runs.pins)
    if alignment.kind == "none":
        raise NoDifferenceError(_("No tokens of the two prompts are aligned. Align two tokens above first."))
    baseline_runs = [run.baseline or run for run in runs.runs]
    run_and_ids = {"a": (baseline_runs[0], ids), "b": (baseline_runs[1], other_ids)}
    clean_run = selection.option("clean_run")
    other_run = "a" if clean_run == "b" else "b"
    (clean, clean_ids), (corrupted, corrupted_ids) = run_and_ids[clean_run], run_and_ids[other_run]
    after_clean = ranking_without_interventions(clean, len(clean_ids) - 1)
    after_corrupted = ranking_without_interventions(corrupted, len(corrupted_ids) - 1)
    answer = resolve_token(clean, selection.option("answer"), int(after_clean[0]))
    proposed = next(int(token_id) for token_id in after_corrupted if token_id != answer)
    wrong_answer = resolve_token(clean, selection.option("wrong"), proposed)
    if answer == wrong_answer:
        raise NoDifferenceError(_("The answer and the wrong answer are the same token: choose two that differ."))
    alignment_by_run = {"a": alignment, "b": align_tokens(*texts[::-1], tuple((b, a) for a, b in runs.pins))}
    target_partners = tuple(
        alignment_by_run[run].partners for run in (other_run, clean_run)
    )  # for each run that is patched
    experiment = PatchingExperiment(
        trace.model,
        clean_ids,
        corrupted_ids,
        answer,
        wrong_answer,
        (None, None) if alignment.is_identity else target_partners,
    )
    return PromptPairContext(experiment, clean, corrupted, clean_run, alignment)


def require_patchable_pair(runs: Comparison, selection: Selection, component: str) -> PromptPairContext:
    """Return the prompt pair, or raise if the component cannot be patched between its prompts.

    Raises:
        NoDifferenceError: the component cannot be patched between them, or see `make_prompt_pair`.
    """
    prompt_pair = make_prompt_pair(runs, selection)
    if component == "attn.pattern" and not prompt_pair.experiment.is_by_position:
        raise NoDifferenceError(
            whole_patterns_only_message(len(prompt_pair.experiment.clean), len(prompt_pair.experiment.corrupted))
        )
    return prompt_pair


def resolve_token(trace: Trace, text: str, proposed: int) -> int:
    """Return the id of a token's text, with a space before it if there is no other; `proposed` for an empty text.

    Raises:
        NoDifferenceError: the vocabulary has no such token.
    """
    text = text.replace("·", " ").replace("↵", "\n")
    if not text:
        return proposed
    vocabulary = list(trace.vocabulary)
    for candidate in (text, f" {text}"):
        if candidate in vocabulary:
            return vocabulary.index(candidate)
    message = _(
        "“{text}” is no token of this model: choose one of the list, or write one as the next-token panel does."
    )
    raise NoDifferenceError(message.format(text=text))
