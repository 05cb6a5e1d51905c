"""What was changed of the run, and of the second one."""

from explorer.explain.place import as_text
from explorer.language import _
from explorer.state.interventions import FromOther, Intervention
from explorer.tracing.trace import Trace
from explorer.web.widgets.widget import Widget


class Changes(Widget):
    """The edits of each in words, each with a button that takes it back; nothing where there are none."""

    def __init__(self, **kwargs):
        super().__init__(html='<div class="changes" role="status"></div>', **kwargs)

    @staticmethod
    def pack(trace: Trace, other: Trace | None = None) -> dict[str, list[list[str]]]:
        """By the field of the state that has them an edit's text and words each.

        Args:
            other: the second run's, if there is one.
        """
        runs = {"edits": trace} | ({"b.edits": other} if other else {})
        is_foreign = other is not None and trace.model != other.model

        def words(run: Trace, edit: Intervention) -> str:
            said = edit.words(run.config, as_text(run))
            return (
                _("{change}: another model’s value", change=said)
                if is_foreign and isinstance(edit, FromOther)
                else said
            )

        return {name: [[str(edit), words(run, edit)] for edit in run.edits] for name, run in runs.items()}
