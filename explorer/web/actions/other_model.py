"""Switching the model while keeping the text."""

from dataclasses import replace

from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.tracing.token_ids import has_bos, retokenize
from explorer.web.actions.run_factory import RunFactory


def rerun_with_model(
    run_factory: RunFactory, checkpoint: str, prompt: str, page_state: PageState, saved_state: PageState | None
) -> PageState:
    """Return the state with another model, with that model's saved continuations or the current one retokenized.

    Args:
        prompt: text of the prompt.
        saved_state: the other model's run and tree when it was last open; None for none.
    """
    if (
        saved_state is not None
        and run_factory.runs.text(saved_state.run)[0] == run_factory.runs.text(page_state.run)[0]
    ):
        run = replace(saved_state.run, edits=page_state.run.edits)
        return replace(page_state, run=run, branches=saved_state.branches, began=saved_state.began)
    (_, old), (_, new) = (run_factory.runs.model(name) for name in (page_state.run.checkpoint, checkpoint))
    if old.vocabulary == new.vocabulary:  # the same ids, even where the tokenizer would cut the text otherwise
        run = replace(page_state.run, checkpoint=checkpoint)
    else:
        run = run_factory.create_run(checkpoint, prompt, with_bos=has_bos(page_state.run.prompt, old))
        generated = retokenize(
            page_state.run.generated, old, new, is_continuation=True, previous_ids=page_state.run.prompt
        )
        run = replace(run, generated=generated, edits=page_state.run.edits)
    return replace(page_state, run=run, branches=(), began=len(run.generated))


def saved_continuations(checkpoint: str, fields: object) -> PageState | None:
    """Parse the run and tree that the browser saved for a model; None if there is no continuation, or it is invalid."""
    if not isinstance(fields, dict):
        return None
    try:
        page_state = PageState.parse(fields | {"checkpoint": checkpoint, "edits": ""})
    except UserError:
        return None
    return page_state if page_state.run.generated or page_state.branches else None
