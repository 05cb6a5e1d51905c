"""Creation of runs and states: from prompts and URLs, with their first selection, and with another model or run."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from explorer.errors import UserError
from explorer.lessons.example_prompts import PARTNER_PROMPTS, PROMPT_PAIRS, similar_word
from explorer.state.page_state import MAX_TOKENS, OTHER_PREFIX, PageState, RunRequest, chat_messages
from explorer.state.selection import Selection, parse_index
from explorer.state.token_alignment import format_pins, parse_pins
from explorer.tracing.run_service import RunService
from explorer.tracing.token_ids import encode_messages, encode_prompt, has_bos, retokenize, strip_bos
from explorer.tracing.training_history import model_name
from explorer.translations import _
from explorer.views import VIEW_BY_NAME
from explorer.views.selection import select_strongest
from explorer.web.user_messages import USER_ERRORS, user_message, warn
from model.tokenizer import Message


class PageStateBuilder:
    """Creates runs and states; errors are those of `RunService`."""

    def __init__(self, runs: RunService):
        self.runs = runs

    def create_run(self, checkpoint: str, text: str, with_bos: bool = True) -> RunRequest:
        """Return the run of a prompt, truncated from the left to the window that `generate` would read.

        Args:
            with_bos: whether the model's BOS tokens are prepended.

        Raises:
            UserError: the prompt is empty.
        """
        checkpoint = self.runs.library.catalog.resolve(checkpoint)
        lm, tokenizer = self.runs.model(checkpoint)
        ids, dropped = encode_prompt(text, tokenizer, lm.config.context_length, with_bos)
        return RunRequest(checkpoint, ids, dropped=dropped)

    def create_chat_run(self, checkpoint: str, messages: Sequence[Message]) -> RunRequest:
        """Return the run of a conversation, as the model's chat template writes it.

        Raises:
            UserError: there is no message.
            ModelError: the model has no chat template, or it refuses the messages.
        """
        if not messages:
            raise UserError(_("The prompt is empty. Type a few words for the model to continue."))
        checkpoint = self.runs.library.catalog.resolve(checkpoint)
        lm, tokenizer = self.runs.model(checkpoint)
        ids, dropped = encode_messages(messages, tokenizer, lm.config.context_length)
        return RunRequest(checkpoint, ids, dropped=dropped)

    def toggle_bos(self, page_state: PageState) -> PageState:
        """Remove the model's BOS tokens from the prompt, or prepend them if they are missing.

        Raises:
            UserError: the model has no BOS tokens, or the prompt is empty without them.
        """
        run, (_lm, tokenizer) = page_state.run, self.runs.model(page_state.run.checkpoint)
        if not tokenizer.bos_ids:
            raise UserError(_("This model has no beginning-of-text (BOS) token."))
        text_ids = strip_bos(run.prompt, tokenizer)
        if not text_ids:
            raise UserError(_("The prompt is empty. Type a few words for the model to continue."))
        prompt = text_ids if has_bos(run.prompt, tokenizer) else (*tokenizer.bos_ids, *text_ids)[:MAX_TOKENS]
        return replace(page_state, run=replace(run, prompt=prompt))

    def state_from_query(self, state: Mapping[str, Any]) -> PageState:
        """Return the state of a URL's query, which has token ids or a prompt as `text`; missing fields get defaults.

        Raises:
            UserError: the query is invalid, also if it describes a second run incompletely.
        """
        page_state = PageState.parse(complete_other_model(self._resolve_checkpoints(state)))
        if VIEW_BY_NAME[page_state.selection.view].requires_own_module and not self.runs.library.catalog.own_module:
            page_state = replace(page_state, selection=replace(page_state.selection, view=Selection.view))
        select = self.clamp_selection
        if not page_state.run.prompt:
            checkpoint, messages = page_state.run.checkpoint, chat_messages(page_state.chat)
            text = str(state.get("text", ""))
            run = self.create_chat_run(checkpoint, messages) if messages else self.create_run(checkpoint, text)
            page_state = replace(page_state, run=replace(run, edits=page_state.run.edits))
            select = self.clamp_selection if "query" in state else self.select_last_token
        if page_state.other:
            if not page_state.other.prompt and isinstance(text := state.get("b.text"), str):
                other = replace(self.create_run(page_state.other.checkpoint, text), edits=page_state.other.edits)
                page_state = replace(page_state, other=other)
            self.runs.comparison(page_state)
        return self._default_selection(select(page_state), state.keys())

    def _resolve_checkpoints(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the state with model names resolved to checkpoints."""
        names = {name: state.get(name) for name in ("checkpoint", f"{OTHER_PREFIX}checkpoint")}
        resolve = self.runs.library.catalog.resolve
        return {**state, **{name: resolve(model) for name, model in names.items() if model and isinstance(model, str)}}

    def _default_selection(self, page_state: PageState, named: Collection[str]) -> PageState:
        """Return the state with `select_strongest` applied to its run."""
        _lm, trace = self.runs.model_and_trace(page_state.run)  # the model is held while weights are read
        return replace(page_state, selection=select_strongest(trace, page_state.selection, named))

    def select_top_head(self, page_state: PageState) -> PageState:
        """Select the last token, the head with the largest effect on the top token's logit, and that head's top key."""
        page_state = self.select_last_token(
            replace(page_state, selection=page_state.selection.replace(target=1, rival=0, pattern="weight"))
        )
        return self._default_selection(page_state, set())

    def select_top_key(self, page_state: PageState, before: Mapping[str, Any]) -> PageState:
        """Select the last token, the top key of the selected head, and the top neuron unless one was chosen.

        Args:
            before: the state with the run that was open.
        """
        named = {"layer", "head"} | ({"neuron"} if self.has_chosen_neuron(before) else set())
        return self._default_selection(self.select_last_token(page_state), named)

    def has_chosen_neuron(self, state: Mapping[str, Any]) -> bool:
        """Return whether the neuron stays for another prompt: if its view is open, or another one is the strongest."""
        try:
            before = PageState.parse(state)
            if before.selection.view == "feed_forward":
                return True
            _lm, trace = self.runs.model_and_trace(before.run)  # the model is held while weights are read
            if not trace.has_weights:
                return True
            selection = before.selection.clamp_to_trace(trace)
            return selection.neuron != select_strongest(trace, selection, {"layer", "head", "key"}).neuron
        except USER_ERRORS:
            return True

    def next_revision(self, state: Mapping[str, Any]) -> PageState:
        """Return the parsed state with the next turn number.

        Raises:
            UserError, CheckpointError: the state is invalid, or its run cannot be computed.
        """
        page_state = PageState.parse(state)
        self.runs.trace(page_state.run)
        return replace(page_state, turn=page_state.turn + 1)

    def clamp_selection(self, page_state: PageState) -> PageState:
        """Return the state with the selection clamped to what exists in the run."""
        return replace(page_state, selection=page_state.selection.clamp_to_trace(self.runs.trace(page_state.run)))

    def select_last_token(self, page_state: PageState) -> PageState:
        """Return the state with the last token as the query, the one before as the key, and the rest clamped."""
        last = len(self.runs.trace(page_state.run)) - 1
        selection = replace(page_state.selection, query=last, key=max(0, last - 1))
        return self.clamp_selection(replace(page_state, selection=selection))


def complete_other_model(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a query in which B's model defaults to A's if B has a text or interventions of its own.

    Raises:
        UserError: the query describes B incompletely.
    """
    other_fields = {name for name, value in state.items() if name.startswith(OTHER_PREFIX) and value and value != "0"}
    names = ", ".join(sorted(other_fields))
    if not other_fields & {"b.checkpoint", "b.prompt", "b.edits"} and "b.text" not in state:
        if other_fields:
            raise UserError(_("an address with {names} needs b.text, b.prompt, b.edits or b.checkpoint", names=names))
        return state
    if "b.prompt" not in other_fields and (ids := other_fields & {"b.generated", "b.dropped"}):
        raise UserError(_("an address with {names} needs b.prompt", names=", ".join(sorted(ids))))
    return state if "b.checkpoint" in other_fields else {**state, "b.checkpoint": state["checkpoint"]}


def state_with_other_model(
    state_builder: PageStateBuilder, checkpoint: str, prompt: str, page_state: PageState, saved_state: PageState | None
) -> PageState:
    """Return the state with another model, with that model's saved continuations or the current one retokenized.

    Args:
        prompt: text of the prompt.
        saved_state: the other model's run and tree when it was last open; None for none.
    """
    if (
        saved_state is not None
        and state_builder.runs.text(saved_state.run)[0] == state_builder.runs.text(page_state.run)[0]
    ):
        run = replace(saved_state.run, edits=page_state.run.edits)
        return replace(page_state, run=run, branches=saved_state.branches, began=saved_state.began)
    (_lm, old), (_other_lm, new) = (state_builder.runs.model(name) for name in (page_state.run.checkpoint, checkpoint))
    if page_state.chat:
        run = state_builder.create_chat_run(checkpoint, chat_messages(page_state.chat))
        generated = retokenize(page_state.run.generated, old, new, is_continuation=True)
        generated = page_state.run.generated if run.prompt == page_state.run.prompt else generated
        run = replace(run, generated=generated, edits=page_state.run.edits)
    elif old.vocabulary == new.vocabulary:  # the same ids, even where the tokenizer would cut the text otherwise
        run = replace(page_state.run, checkpoint=checkpoint)
    else:
        run = state_builder.create_run(checkpoint, prompt, with_bos=has_bos(page_state.run.prompt, old))
        generated = retokenize(
            page_state.run.generated, old, new, is_continuation=True, previous_ids=page_state.run.prompt
        )
        run = replace(run, generated=generated, edits=page_state.run.edits)
    return replace(page_state, run=run, branches=(), began=len(run.generated))


def parse_saved_continuations(checkpoint: str, fields: dict[str, Any] | None) -> PageState | None:
    """Parse the run and tree that the browser saved for a model; None if there is no continuation, or it is invalid."""
    if fields is None:
        return None
    try:
        page_state = PageState.parse(fields | {"checkpoint": checkpoint, "edits": ""})
    except UserError:
        return None
    return page_state if page_state.run.generated or page_state.branches else None


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
        if kind not in constructors:
            message = _("a run is compared with one of {ways}, got {got!r:.80}")
            raise UserError(message.format(ways=", ".join(constructors), got=kind))
        visible_run, other = page_state.selection.shown if page_state.other else "difference", constructors[kind]()
        if other.edits and other.edits != (page_state.other and page_state.other.edits):
            warn(UserError(_("B has A’s changes, too. To compare without them, remove them from B.")))
        return replace(page_state, other=other, pins=(), selection=replace(page_state.selection, shown=visible_run))

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
