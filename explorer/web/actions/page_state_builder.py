"""Creation of runs and states: from prompts and URLs, with their first selection, and with another model."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from explorer.errors import UserError
from explorer.state.page_state import MAX_TOKENS, OTHER_PREFIX, PageState, RunRequest, chat_messages
from explorer.state.selection import Selection
from explorer.tracing.run_service import RunService
from explorer.tracing.token_ids import encode_messages, encode_prompt, has_bos, retokenize, strip_bos
from explorer.translations import _
from explorer.views import VIEW_BY_NAME
from explorer.views.selection import select_strongest
from model.chat_messages import Message


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

    def select_top_key(self, page_state: PageState) -> PageState:
        """Select the last token, and the key that it looks at most in the selected head."""
        return self._default_selection(self.select_last_token(page_state), {"layer", "head", "neuron"})

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


def parse_saved_continuations(checkpoint: str, fields: object) -> PageState | None:
    """Parse the run and tree that the browser saved for a model; None if there is no continuation, or it is invalid."""
    if not isinstance(fields, dict):
        return None
    try:
        page_state = PageState.parse(fields | {"checkpoint": checkpoint, "edits": ""})
    except UserError:
        return None
    return page_state if page_state.run.generated or page_state.branches else None
