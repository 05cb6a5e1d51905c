"""What stands where on the page."""

from collections.abc import Callable, Sequence
from html import escape

import gradio as gr

from explorer.language import _, look_up
from explorer.lessons.examples import EXAMPLES
from explorer.lessons.prompt_pairs import PROMPT_PAIRS
from explorer.state.selection import SIMPLE_TABS
from explorer.tracing.offered_models import OfferedModels
from explorer.views import FULL, OWN, SIMPLE
from explorer.views.view import Panel, View
from explorer.web.layout.sampling_panel import SamplingPanel
from explorer.web.layout.writing_panel import WritingButtons, place_writing
from explorer.web.protocol import (
    ADVICE,
    CHANGES,
    CHOOSERS,
    FORMULA,
    GUESS,
    IN_FULL,
    LESSON,
    LISTS,
    OPEN_MODEL,
    PICKER,
    PROBLEM,
    RUNS,
    SERIES,
    STAND_INS,
    STRIP,
    STRIP_B,
    TAB,
    WALK,
    WALKS,
    WHAT_IFS,
    WHY,
    WORDS,
    WRITTEN,
    in_tab,
)
from explorer.web.widgets.advice import Advice
from explorer.web.widgets.asked import Asked
from explorer.web.widgets.changes import Changes
from explorer.web.widgets.choosers import Choosers
from explorer.web.widgets.figure import Figure
from explorer.web.widgets.fold import Fold
from explorer.web.widgets.glossary import Glossary
from explorer.web.widgets.guess import Guess
from explorer.web.widgets.head_grid import HeadGrid
from explorer.web.widgets.in_full import InFull
from explorer.web.widgets.language_list import LanguageList
from explorer.web.widgets.lesson import Lesson
from explorer.web.widgets.lessons import Lessons
from explorer.web.widgets.mode import Mode
from explorer.web.widgets.model_map import ModelMap
from explorer.web.widgets.open_model import OpenModel
from explorer.web.widgets.picker import Picker
from explorer.web.widgets.present import Present
from explorer.web.widgets.prompt_lists import PromptLists
from explorer.web.widgets.prompt_pairs import PromptPairs
from explorer.web.widgets.room import Room
from explorer.web.widgets.runs import Runs
from explorer.web.widgets.series import Series
from explorer.web.widgets.stage import Stage
from explorer.web.widgets.state import State
from explorer.web.widgets.state_update import StateUpdate
from explorer.web.widgets.token_strip import TokenStrip
from explorer.web.widgets.walk import Walk
from explorer.web.widgets.walk_button import WalkButton
from explorer.web.widgets.what_ifs import WhatIfs
from explorer.web.widgets.words import Words

TITLE = "TransformerLM Explorer"


class Layout:
    """The page's widgets, placed in the open `gr.Blocks`.

    Args:
        offered: the models to choose from.
        checkpoint: the one chosen first.
        functions: what the browser may ask Python.
    """

    def __init__(self, offered: OfferedModels, checkpoint: str, functions: Sequence[Callable]):
        self.state = State(functions, elem_id="state")
        self.update, self.written = StateUpdate(elem_id="state-update"), StateUpdate(elem_id="state-written")
        self.place_header(offered, checkpoint)
        self.place_prompt()
        with gr.Row(elem_id="columns"):
            with gr.Column(scale=7, min_width=340):
                Series(elem_id=SERIES)
                self.tab: dict[str, gr.Tab] = {}
                full = (*FULL, *(OWN if offered.own_module else ()))
                self.steps, self.tabs = self.place_views(SIMPLE, "steps"), self.place_views(full, "views")
                Glossary(elem_id="glossary")
                self.open_file = gr.Button(
                    _("Open a saved file"), size="sm", scale=0, min_width=90, elem_id="open-file"
                )
            with gr.Column(scale=3, min_width=330, elem_id="generation"):
                self.buttons, self.sampling = WritingButtons(), SamplingPanel()
                place_writing()

    def place_header(self, offered: OfferedModels, checkpoint: str):
        with gr.Row(elem_id="header"):
            gr.Markdown(f"# {TITLE}", elem_id="title")
            Fold(words="⋯", name=_("more of the page"), elem_id="more-of-header")
            self.picker = Picker(offered.names, offered.opens, value=checkpoint, elem_id=PICKER)
            self.facts = Words(elem_id="facts")
            Mode(elem_id="mode")
            Lessons(elem_id="lessons")
            Present(elem_id="present")
            Room(elem_id="room")
            self.share = gr.Button(_("Copy link"), size="sm", scale=0, min_width=90)
            LanguageList(elem_id="language")
            self.theme = gr.Button(_("Light / dark"), size="sm", scale=0, min_width=100)
        self.open_model = OpenModel(elem_id=OPEN_MODEL)
        Lesson(elem_id=LESSON)
        Stage(elem_id="stage")
        Walk(elem_id="walk")

    def place_prompt(self):
        Words(
            _("A small language model reads your words and guesses the next one. Guess first, then see what it says."),
            elem_id="tagline",
        )
        with gr.Row(elem_id="prompt-row"):
            self.prompt = gr.Textbox(
                label=_("prompt"),
                show_label=False,
                container=False,
                placeholder=_("Type the beginning of a story"),
                lines=1,
                max_lines=4,
                interactive=True,
                elem_id="prompt",
                scale=8,
            )
            self.run = gr.Button(_("Run"), variant="primary", scale=0, min_width=90, elem_id="run")
            with gr.Row(elem_id="examples"):
                gr.Markdown(escape(_("try")))
                self.examples = [
                    (gr.Button(look_up(name), size="sm", scale=0, min_width=60), text)
                    for name, text in EXAMPLES.items()
                ]
        TokenStrip(elem_id=STRIP)
        TokenStrip(run="b", elem_id=STRIP_B)
        self.vocabulary = Words(elem_id="vocabulary")
        Words(
            _("The fuller a token’s colour, the more it surprised the model; · is a space, ↵ a line break."),
            elem_id="legend",
        )
        self.guess = Guess(elem_id=GUESS)
        self.advice = Advice(elem_id=ADVICE)
        with gr.Row(elem_id="questions"):
            Asked(field="why", words=_("Why this token?"), elem_id=WHY)
            Asked(field="stand_ins", words=_("Which parts stand in for one another?"), elem_id=STAND_INS)
            Fold(words=_("compare, colour"), elem_id="more-questions")
        Changes(elem_id=CHANGES)
        Runs(elem_id=RUNS)
        Words(elem_id=PROBLEM)

    def place_views(self, views: Sequence[View], elem_id: str) -> gr.Tabs:
        with gr.Tabs(elem_id=elem_id) as tabs:
            for view in views:
                with gr.Tab(look_up(view.title), id=view.name, elem_id=in_tab(view.name, TAB)) as self.tab[view.name]:
                    Words(look_up(view.words), elem_id=in_tab(view.name, WORDS))
                    if view.name == "patching":
                        PromptPairs(PROMPT_PAIRS, elem_id="prompt-pairs")
                    Choosers(elem_id=in_tab(view.name, CHOOSERS))
                    if view.recipe:
                        PromptLists(elem_id=in_tab(view.name, LISTS))
                    if view.what_ifs:
                        WhatIfs(elem_id=in_tab(view.name, WHAT_IFS))
                    Words(kind="formula", elem_id=in_tab(view.name, FORMULA))
                    if view.written:
                        Words(kind="formula", elem_id=in_tab(view.name, WRITTEN))
                    if view.name in WALKS:
                        WalkButton(WALKS[view.name], elem_id=in_tab(view.name, WALK))
                    with gr.Row(elem_classes="panels"):
                        for panel in view.panels:
                            place_panel(view.name, panel)
                    if view.in_full:
                        InFull(elem_id=in_tab(view.name, IN_FULL))
        return tabs

    def tabs_of(self, view: str) -> gr.Tabs:
        """The bar that has a view's tab."""
        return self.steps if view in SIMPLE_TABS else self.tabs


def place_panel(view: str, panel: Panel) -> Figure | HeadGrid | ModelMap:
    """The widget of a panel."""
    place = {
        "title": look_up(panel.title),
        "elem_id": in_tab(view, panel.name),
        "elem_classes": [f"panel-{panel.width}", *["once"] * panel.once],
    }
    if panel.kind == "head_grid":
        return HeadGrid(selects=panel.selects, **place)
    if panel.kind == "model_map":
        return ModelMap(height=panel.height, min_width=panel.min_width, **place)
    size = {"height": panel.height, "min_plot_width": panel.min_width}
    return Figure(selects=panel.selects, to_steps=panel.to_steps, **size, **place)
