"""Has Gradio describe no widgets for each of its visitors, which takes longer than a click when they come and again at
every event: descriptions are for its deep links alone, which are not served (http/gate.py)."""

from types import SimpleNamespace

import gradio as gr
from gradio import state_holder


class LightSession(state_holder.SessionState):
    """A visitor of whom no widgets are described."""

    def __init__(self, blocks: gr.Blocks):
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks=()))

    def __setitem__(self, key: int, value: object):
        if isinstance(self.blocks_config.blocks.get(key), gr.State):
            super().__setitem__(key, value)
        else:
            self.blocks_config.blocks[key] = value

    def _update_config(self, key: int):
        pass

    def _update_value_in_config(self, key: int, value: object):
        pass


state_holder.SessionState = LightSession
