"""The same text, read by another model."""

from dataclasses import replace

from explorer.state.errors import UserError
from explorer.state.page_state import PageState
from explorer.tracing.translation import is_begun, translated
from explorer.web.events.opening import Opening


def read_by(opening: Opening, checkpoint: str, prompt: str, asked: PageState, own: PageState | None) -> PageState:
    """The same asked of another model: with the continuations it has of the same text from before, or else with what
    is written now.

    Args:
        prompt: the text of the prompt.
        own: what the other model's run and tree were, when it was last here.
    """
    if own is not None and opening.runs.text(own.run)[0] == opening.runs.text(asked.run)[0]:
        run = replace(own.run, edits=asked.run.edits)
        return replace(asked, run=run, branches=own.branches, began=own.began)
    (_, old), (_, new) = (opening.runs.model(name) for name in (asked.run.checkpoint, checkpoint))
    if old.vocabulary == new.vocabulary:  # the same ids, even where the tokenizer would cut the text otherwise
        run = replace(asked.run, checkpoint=checkpoint)
    else:
        run = opening.run_of(checkpoint, prompt, begun=is_begun(asked.run.prompt, old))
        generated = translated(asked.run.generated, old, new, goes_on=True, before=asked.run.prompt)
        run = replace(run, generated=generated, edits=asked.run.edits)
    return replace(asked, run=run, branches=(), began=len(run.generated))


def own_continuations(checkpoint: str, own: object) -> PageState | None:
    """What the browser kept of a model's run and tree; None where nothing was written, or it makes no sense."""
    if not isinstance(own, dict):
        return None
    try:
        asked = PageState.parse(own | {"checkpoint": checkpoint, "edits": ""})
    except UserError:
        return None
    return asked if asked.run.generated or asked.branches else None
