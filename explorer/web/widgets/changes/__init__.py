"""What was changed of the run."""

from explorer.explain.place import as_text
from explorer.tracing.trace import Trace
from explorer.web.widgets.widget import Widget


class Changes(Widget):
    """The edits in words, each with a button that takes it back; nothing where there are none."""

    def __init__(self, **kwargs):
        super().__init__(html='<div class="changes" role="status"></div>', **kwargs)

    @staticmethod
    def pack(trace: Trace) -> list[list[str]]:
        """An edit's text and words each."""
        return [[str(edit), edit.words(trace.config, as_text(trace))] for edit in trace.edits]
