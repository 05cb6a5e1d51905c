"""Layout of the whole page."""

from collections.abc import Sequence
from html import escape

import gradio as gr

from explorer.lessons.example_prompts import EXAMPLES
from explorer.lessons.prompt_pairs import PROMPT_PAIRS
from explorer.state.view_registry import is_story_view
from explorer.tracing.model_catalog import ModelCatalog
from explorer.translations import _, translate
from explorer.views import SIMPLE, full_page_views
from explorer.views.view import Panel, View
from explorer.web.layout.sampling_panel import SamplingPanel
from explorer.web.layout.writing_panel import GenerationButtons, build_generation_texts
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
    element_id,
)
from explorer.web.widgets.advice import PromptAdviceLine
from explorer.web.widgets.changes import ActiveInterventions
from explorer.web.widgets.choosers import SelectFields
from explorer.web.widgets.explanation import ExplanationButton
from explorer.web.widgets.figure import Figure
from explorer.web.widgets.fold import CollapseButton
from explorer.web.widgets.full_page_link import FullPageLink
from explorer.web.widgets.glossary import Glossary
from explorer.web.widgets.guess import NextTokenGuess
from explorer.web.widgets.head_grid import HeadGrid
from explorer.web.widgets.language_list import LanguageList
from explorer.web.widgets.lesson import LessonPanel
from explorer.web.widgets.lessons import LessonListButton
from explorer.web.widgets.mode import PageModeSwitch
from explorer.web.widgets.model_map import ModelMap
from explorer.web.widgets.open_model import HubModelForm
from explorer.web.widgets.picker import ModelPicker
from explorer.web.widgets.present import PresentationMenu
from explorer.web.widgets.prompt_lists import DirectionPromptLists
from explorer.web.widgets.prompt_pairs import PromptPairButtons
from explorer.web.widgets.room import RoomPanel
from explorer.web.widgets.runs import ComparisonBar
from explorer.web.widgets.series import TrainingStepSlider
from explorer.web.widgets.stage import Presentation
from explorer.web.widgets.state import State
from explorer.web.widgets.state_update import StateUpdate
from explorer.web.widgets.token_strip import TokenStrip
from explorer.web.widgets.walk import WalkthroughPlayer
from explorer.web.widgets.walk_button import WalkthroughButton
from explorer.web.widgets.what_ifs import InterventionControls
from explorer.web.widgets.words import TextBlock

TITLE = "TransformerLM Explorer"


class PageLayout:
    """The page's widgets, built in the open `gr.Blocks`.

    Args:
        catalog: the models to choose from.
        checkpoint: the one selected first.
    """

    def __init__(self, catalog: ModelCatalog, checkpoint: str):
        self.state, self.update = State(elem_id="state"), StateUpdate(elem_id="state-update")
        self.build_header(catalog, checkpoint)
        self.build_prompt()
        with gr.Row(elem_id="columns"):
            with gr.Column(scale=7, min_width=340):
                TrainingStepSlider(elem_id=SERIES)
                self.tab: dict[str, gr.Tab] = {}
                full = full_page_views(has_own_module=bool(catalog.own_module))
                self.steps, self.tabs = self.build_tabs(SIMPLE, "steps"), self.build_tabs(full, "views")
                Glossary(elem_id="glossary")
                self.open_file = gr.Button(
                    _("Open a saved file"), size="sm", scale=0, min_width=90, elem_id="open-file"
                )
            with gr.Column(scale=3, min_width=330, elem_id="generation"):
                self.buttons, self.sampling = GenerationButtons(), SamplingPanel()
                build_generation_texts()

    def build_header(self, catalog: ModelCatalog, checkpoint: str):
        with gr.Row(elem_id="header"):
            gr.Markdown(f"# {TITLE}", elem_id="title")
            CollapseButton(text="⋯", name=_("more of the page"), elem_id="more-of-header")
            self.picker = ModelPicker(catalog.names, catalog.allows_opening, value=checkpoint, elem_id=PICKER)
            self.facts = TextBlock(elem_id="facts")
            PageModeSwitch(elem_id="mode")
            LessonListButton(elem_id="lessons")
            PresentationMenu(elem_id="present")
            RoomPanel(elem_id="room")
            self.share = gr.Button(_("Copy link"), size="sm", scale=0, min_width=90)
            LanguageList(elem_id="language")
            self.theme = gr.Button(_("Light / dark"), size="sm", scale=0, min_width=100)
        self.open_model = HubModelForm(elem_id=OPEN_MODEL)
        LessonPanel(elem_id=LESSON)
        Presentation(elem_id="stage")
        WalkthroughPlayer(elem_id="walk")

    def build_prompt(self):
        TextBlock(
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
                    (gr.Button(translate(name), size="sm", scale=0, min_width=60), text)
                    for name, text in EXAMPLES.items()
                ]
        TokenStrip(elem_id=STRIP)
        TokenStrip(run="b", elem_id=STRIP_B)
        self.vocabulary = TextBlock(elem_id="vocabulary")
        TextBlock(
            _("The fuller a token’s colour, the more it surprised the model; · is a space, ↵ a line break."),
            elem_id="legend",
        )
        self.guess = NextTokenGuess(elem_id=GUESS)
        self.advice = PromptAdviceLine(elem_id=ADVICE)
        with gr.Row(elem_id="questions"):
            ExplanationButton(field="why", question=_("Why this token?"), elem_id=WHY)
            ExplanationButton(field="stand_ins", question=_("Which parts stand in for one another?"), elem_id=STAND_INS)
            CollapseButton(text=_("compare, colour"), elem_id="more-questions")
        ActiveInterventions(elem_id=CHANGES)
        ComparisonBar(elem_id=RUNS)
        TextBlock(elem_id=PROBLEM)

    def build_tabs(self, views: Sequence[View], elem_id: str) -> gr.Tabs:
        with gr.Tabs(elem_id=elem_id) as tabs:
            for view in views:
                with gr.Tab(translate(view.title), id=view.name, elem_id=element_id(view.name, TAB)) as self.tab[
                    view.name
                ]:
                    TextBlock(translate(view.description), elem_id=element_id(view.name, WORDS))
                    if view.name == "patching":
                        PromptPairButtons(PROMPT_PAIRS, elem_id="prompt-pairs")
                    SelectFields(elem_id=element_id(view.name, CHOOSERS))
                    if view.direction_spec:
                        DirectionPromptLists(elem_id=element_id(view.name, LISTS))
                    if view.intervention_controls:
                        InterventionControls(elem_id=element_id(view.name, WHAT_IFS))
                    TextBlock(kind="formula", elem_id=element_id(view.name, FORMULA))
                    if view.continuation_text:
                        TextBlock(kind="formula", elem_id=element_id(view.name, WRITTEN))
                    if view.name in WALKS:
                        WalkthroughButton(WALKS[view.name], elem_id=element_id(view.name, WALK))
                    with gr.Row(elem_classes="panels"):
                        for panel in view.panels:
                            make_panel_widget(view.name, panel)
                    if view.full_page_link:
                        FullPageLink(elem_id=element_id(view.name, IN_FULL))
        return tabs

    def tab_bar(self, view: str) -> gr.Tabs:
        """Return the tab bar that contains a view's tab."""
        return self.steps if is_story_view(view) else self.tabs


def make_panel_widget(view: str, panel: Panel) -> Figure | HeadGrid | ModelMap:
    """Create the widget of a panel."""
    panel_options = {
        "title": translate(panel.title),
        "elem_id": element_id(view, panel.name),
        "elem_classes": [f"panel-{panel.width}", *["once"] * panel.is_selection_independent],
    }
    if panel.kind == "head_grid":
        return HeadGrid(selects=panel.click_selects, **panel_options)
    if panel.kind == "model_map":
        return ModelMap(height=panel.height, min_width=panel.min_width, **panel_options)
    size = {"height": panel.height, "min_plot_width": panel.min_width}
    return Figure(selects=panel.click_selects, to_steps=panel.click_opens_checkpoint, **size, **panel_options)
