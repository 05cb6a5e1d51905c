"""What was changed of the run."""

from collections.abc import Sequence

from explorer.state.interventions import Intervention
from explorer.web.widgets.widget import Widget
from model.config import ModelConfig


class Changes(Widget):
    """The edits in words, each with a button that takes it back; nothing where there are none."""

    def __init__(self, **kwargs):
        super().__init__(html='<div class="changes" role="status"></div>', **kwargs)

    @staticmethod
    def pack(edits: Sequence[Intervention], config: ModelConfig) -> list[list[str]]:
        """An edit's text and words each."""
        return [[str(edit), edit.words(config)] for edit in edits]
