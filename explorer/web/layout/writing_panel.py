"""Panel of generation: buttons, generated text, and branches."""

from html import escape

import gradio as gr

from explorer.translations import _
from explorer.web.protocol import BRANCHES, BRIEF, PLAYBACK, STORY
from explorer.web.widgets.branches import ContinuationTree
from explorer.web.widgets.brief import PromptTail
from explorer.web.widgets.playback import GenerationPlayer
from explorer.web.widgets.story import GeneratedText


class GenerationButtons:
    """Buttons that generate tokens, built in the open `gr.Blocks`."""

    def __init__(self):
        with gr.Column(elem_id="bar"):  # in reach wherever the page was scrolled to
            PromptTail(elem_id=BRIEF)
            with gr.Row(elem_classes="buttons"):
                self.step = gr.Button(_("Step"), min_width=70, elem_id="step")
                self.generate = gr.Button(_("Generate"), variant="primary", min_width=90, elem_id="generate")
                self.stop = gr.Button(_("Stop"), min_width=70, elem_id="stop")
        with gr.Row(elem_classes="buttons"):
            self.undo = gr.Button(_("Undo"), size="sm", min_width=70, elem_id="undo")
            self.regenerate = gr.Button(_("Regenerate"), size="sm", min_width=90, elem_id="regenerate")
            self.compare = gr.Button(
                _("Greedy, beam and sampling side by side"), size="sm", min_width=200, elem_id="compare"
            )


def build_generation_texts():
    """Build the widgets of the generated texts in the open `gr.Blocks`."""
    gr.Markdown("## " + escape(_("What was written")))
    GeneratedText(elem_id=STORY)
    GenerationPlayer(elem_id=PLAYBACK)
    ContinuationTree(elem_id=BRANCHES)
