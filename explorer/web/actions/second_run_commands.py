"""Commands that create and change a second run."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from explorer.errors import UserError
from explorer.lessons.example_prompts import PARTNER_PROMPTS, PROMPT_PAIRS, similar_word
from explorer.state.page_state import PageState, RunRequest
from explorer.state.selection import parse_index
from explorer.state.token_alignment import format_pins, parse_pins
from explorer.tracing.token_ids import has_bos
from explorer.tracing.training_history import model_name
from explorer.translations import _
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.user_messages import USER_ERRORS, user_message, warn


class SecondRunCommands:
    """Commands that define run B; errors are those of `PageStateBuilder`, and UserError if a command is invalid."""

    def __init__(self, state_builder: PageStateBuilder):
        self.state_builder = state_builder
        self.commands: dict[str, Callable[[PageState, Mapping[str, Any]], PageState]] = {
            "compare": self.compare,
            "swap": self.swap,
            "copy": self.copy,
            "close": self.close,
            "pin": self.pin,
            "unpin": self.unpin,
            "pair": self.load_prompt_pair,
        }

    def apply_command(self, page_state: PageState, command: Mapping[str, Any]) -> PageState:
        """Apply a command and keep the selection; the comparison is computed, so that no invalid second run remains."""
        before, page_state = page_state, self.commands[command["kind"]](page_state, command)
        page_state = self.drop_invalid_patches(before, page_state)
        if page_state.other:
            self.state_builder.runs.comparison(page_state)
        visible_run = page_state.selection.shown if page_state.other else "a"
        return self.state_builder.clamp_selection(
            replace(page_state, selection=replace(page_state.selection, shown=visible_run))
        )

    def drop_invalid_patches(self, before: PageState, page_state: PageState) -> PageState:
        """Return the state without patches that the other run can no longer supply; warn of what changed."""
        if not page_state.patches:
            if before.patches:
                warn(UserError(_("B has changed. The patches from the other run were removed.")))
            return page_state
        page_state = drop_cross_model_patches(page_state)
        if not page_state.patches:
            return page_state
        try:
            self.state_builder.runs.comparison(page_state)
        except UserError as error:
            warn(UserError(_("{wrong}: the patches from the other run were removed.", wrong=user_message(error))))
            return page_state.without_patches()
        if before.other and {page_state.run.prompt, page_state.other.prompt} != {
            before.run.prompt,
            before.other.prompt,
        }:
            warn(UserError(_("The changes that take the other run’s values now take those of the new B.")))
        return page_state

    def compare(self, page_state: PageState, command: Mapping[str, Any]) -> PageState:
        """Compare with the unchanged run, with the same text by another model, or with another or a similar prompt."""
        run = page_state.run
        constructors = {
            "unchanged": lambda: RunRequest(run.checkpoint, ()),
            "model": lambda: RunRequest(self.require_checkpoint(command.get("checkpoint")), (), edits=()),
            "prompt": lambda: self.set_prompt(page_state, command.get("text")),
            "similar": lambda: self.replace_word(run),
        }
        kind = command.get("with")
        if not isinstance(kind, str) or kind not in constructors:
            message = _("a run is compared with one of {ways}, got {got!r:.80}")
            raise UserError(message.format(ways=", ".join(constructors), got=kind))
        visible_run = page_state.selection.shown if page_state.other else "difference"
        return replace(
            page_state, other=constructors[kind](), pins=(), selection=replace(page_state.selection, shown=visible_run)
        )

    def set_prompt(self, page_state: PageState, text: Any) -> RunRequest:
        """Return B with another prompt and its interventions; those of A and its model if there was no B."""
        before = page_state.other or page_state.run.without_patches()
        _lm, tokenizer = self.state_builder.runs.model(before.checkpoint)
        with_bos = not before.prompt or has_bos(before.prompt, tokenizer)
        return replace(self.state_builder.create_run(before.checkpoint, text, with_bos), edits=before.edits)

    def replace_word(self, run: RunRequest) -> RunRequest:
        """Return the run with its prompt's partner, or else with its most surprising word replaced by a similar one."""
        run = run.without_patches()
        if text := PARTNER_PROMPTS.get(self.state_builder.runs.text(run)[0]):
            return replace(run, prompt=self.state_builder.create_run(run.checkpoint, text).prompt)
        _lm, trace = self.state_builder.runs.model_and_trace(run)  # the model is held while weights are read
        num_unseen = len(run.token_ids) - len(trace)
        position, token_id = similar_word(trace, max(1, len(run.prompt) - num_unseen))
        position += num_unseen
        return replace(run, prompt=(*run.prompt[:position], token_id, *run.prompt[position + 1 :]))

    def follow_prompt(self, page_state: PageState, run: RunRequest) -> RunRequest:
        """Return B once A is another run: if `replace_word` made B of A, it makes the new B of the run."""
        other = page_state.other
        with suppress(*USER_ERRORS):
            proposed = self.replace_word(page_state.run)
            if (other.checkpoint, other.prompt) == (proposed.checkpoint, proposed.prompt):
                return replace(self.replace_word(run), edits=other.edits)
        return other

    def require_checkpoint(self, checkpoint: Any) -> str:
        """Return the name of a checkpoint that loads; UserError for anything else."""
        if not isinstance(checkpoint, str):
            raise UserError(_("the checkpoint must be a name, got {got!r}", got=checkpoint))
        checkpoint = self.state_builder.runs.library.catalog.resolve(checkpoint)
        self.state_builder.runs.model(checkpoint)
        return checkpoint

    def swap(self, page_state: PageState, command: Mapping[str, Any]) -> PageState:
        """Swap A and B, without the tree of continuations, which is A's."""
        other = self.state_builder.runs.second_run(page_state)
        pins = tuple((b, a) for a, b in page_state.pins)
        return replace(page_state, run=other, other=page_state.run, branches=(), began=len(other.generated), pins=pins)

    def copy(self, page_state: PageState, command: Mapping[str, Any]) -> PageState:
        """Copy A to B, so that B stays as it is while A changes."""
        run = page_state.run.without_patches()  # they would take its own values
        return replace(page_state, run=run, other=run, pins=())

    def close(self, page_state: PageState, command: Mapping[str, Any]) -> PageState:
        """Close the second run, and remove patches from it."""
        return replace(page_state.without_patches(), other=None, pins=())

    def pin(self, page_state: PageState, command: Mapping[str, Any]) -> PageState:
        """Align two tokens manually, replacing earlier pins of either."""
        a, b = parse_index(command.get("a")), parse_index(command.get("b"))
        if a is None or b is None or not page_state.other:
            raise UserError(_("aligning two tokens needs their positions in both runs"))
        others = tuple(pair for pair in page_state.pins if pair[0] != a and pair[1] != b)
        return replace(page_state, pins=parse_pins(format_pins((*others, (a, b)))))

    def load_prompt_pair(self, page_state: PageState, command: Mapping[str, Any]) -> PageState:
        """Load a prompt pair for patching: A reads the clean one, B the corrupted one, without interventions."""
        index, checkpoint = parse_index(command.get("pair")), page_state.run.checkpoint
        if index is None or index >= len(PROMPT_PAIRS):
            raise UserError(_("there are {count} pairs of prompts: choose one of them", count=len(PROMPT_PAIRS)))
        pair = PROMPT_PAIRS[index]
        run, other = (self.state_builder.create_run(checkpoint, text) for text in (pair.clean, pair.corrupted))
        selection = page_state.selection.replace(clean_run="a", answer="", wrong="", shown="a")
        last = len(run.prompt) - 1
        selection = replace(selection, query=last, key=max(0, last - 1))
        return PageState(run, selection, turn=page_state.turn, other=other)

    def unpin(self, page_state: PageState, command: Mapping[str, Any]) -> PageState:
        """Remove the pinned pairs."""
        return replace(page_state, pins=())


def drop_cross_model_patches(page_state: PageState) -> PageState:
    """Return the state without patches that copy values between different models, and warn if there were any.

    Checkpoints of one training run count as one model.
    """
    if not page_state.patches or model_name(page_state.run.checkpoint) == model_name(page_state.other.checkpoint):
        return page_state
    message = _("A and B now have different models. The patches from the other run were removed.")
    warn(UserError(message))
    return page_state.without_patches()
