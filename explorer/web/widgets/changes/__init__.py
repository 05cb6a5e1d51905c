"""What was changed of the run, and of the second one."""

from explorer.explain.place import as_text
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
        return {
            name: [[str(edit), edit.words(run.config, as_text(run))] for edit in run.edits]
            for name, run in runs.items()
        }
