"""Sessions for which Gradio describes no widgets, which would take longer than a click.

Gradio describes them when a session starts and again at every event, only for its deep links, which are not served
(http/security_middleware.py).
"""

from types import SimpleNamespace

import gradio as gr
from gradio import state_holder


class LightSession(state_holder.SessionState):
    """A session without descriptions of widgets."""

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
