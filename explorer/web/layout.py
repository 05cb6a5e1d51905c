"""Layout of the page, from top to bottom: what Gradio's components are, the markup around them, and a view's markup."""

from collections.abc import Sequence

import gradio as gr

from explorer.lessons.example_prompts import EXAMPLES, PROMPT_PAIRS
from explorer.state.generation_settings import MAX_SLIDER_TOP_K, MAX_STOP_CHARS, RANGES, GenerationSettings
from explorer.tracing.model_catalog import ModelCatalog
from explorer.translations import N_, _, translate
from explorer.views import STORY_STEPS, numbers_views
from explorer.views.view import Panel, View
from explorer.web import shared_constants
from explorer.web.assets import import_expression
from explorer.web.shared_constants import (
    CHOOSERS,
    CODE,
    FORMULA,
    IN_FULL,
    LISTS,
    TAB,
    WALK,
    WALKS,
    WHAT_IFS,
    WORDS,
    WRITTEN,
    element_id,
)
from explorer.web.widgets import HtmlWidget, escape_text, fill_template
from explorer.web.widgets.figure import (
    HeadGridWidget,
    HeadTableWidget,
    ModelMapWidget,
    PlotlyFigureWidget,
    WholeModelWidget,
)
from explorer.web.widgets.header import (
    CollapseButton,
    ExplanationDepthButtons,
    GlossaryList,
    LanguageList,
    ModelPicker,
    NumbersViewLink,
    OpenModelForm,
    SearchButton,
    TextBlock,
)
from explorer.web.widgets.next_token import ExplanationButton, NextTokenSummary, NextTokenTable, SamplingPresetButtons
from explorer.web.widgets.teaching import (
    ClassSessionPanel,
    LessonListButton,
    LessonPanel,
    PresentationScreen,
    SlidesMenu,
    WalkthroughButton,
    WalkthroughPlayer,
)
from explorer.web.widgets.tokens import (
    ChatForm,
    ContinuationTree,
    GeneratedText,
    GenerationPlayer,
    NextTokenGuessForm,
    NextTokenPreview,
    TokenStrip,
)
from explorer.web.widgets.view_tools import (
    ActiveInterventionList,
    DirectionPromptBoxes,
    InterventionControls,
    PromptAdviceLine,
    PromptPairButtons,
    RunComparisonControls,
    SelectionDropdowns,
    TrainingStepSlider,
)

TITLE = "TransformerLM Explorer"
DEFAULTS = GenerationSettings()
NO_FILTERS = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}  # nothing is cut or penalised
PRESETS = {
    N_("always the likeliest"): NO_FILTERS | {"temperature": 0.0},
    N_("careful"): NO_FILTERS | {"temperature": 0.5, "top_p": 0.9},
    N_("balanced"): {name: getattr(DEFAULTS, name) for name in ("temperature", *NO_FILTERS)},
    N_("adventurous"): NO_FILTERS | {"temperature": 1.2, "top_p": 0.95},
}
SETTING_LABELS = {
    "temperature": N_("temperature"),
    "top_k": N_("top-k"),
    "top_p": N_("top-p"),
    "min_p": N_("min-p"),
    "repetition_penalty": N_("repetition penalty"),
}


COPY_PYTHON = '<button type="button" class="rest copy-python">{name}</button>'  # beside the code
COPY_SUMMARY = '<details class="menu" id="copy"><summary>{name}</summary><div>'
FACTS_SUMMARY = '<details class="menu" id="model-facts"><summary aria-label="{name}"><i>i</i></summary>'
PAGE_MENU = (
    '<details class="menu" id="page-menu"><summary aria-label="{name}"><i>⚙</i> <small class="tag"></small></summary>'
    "<div>"
)
NEXT_TOKEN_HEADER = (
    "<header><h2>{title}</h2><span class='of-run'></span>"
    "<small class='chance'><span class='term quiet' data-term='chance' tabindex='-1'>{chance}</span></small>"
    "<small class='scale'></small>"
    "<small class='tick'><span class='term quiet' data-term='chance' tabindex='-1'>{tick}</span></small></header>"
)

# The likeliest tokens beside the sliders of a narrow screen, in the table's style.
LIKELIEST = (
    '<div data-widget="distribution" data-mounted><ol class="distribution" aria-label="{name}"></ol>'
    '<small class="tick">{tick}</small></div>'
)


class StateComponent(gr.HTML):
    """A value that the page's script and Gradio's events share, without anything to see.

    Args:
        script, function: module that gets the component, and its function that does, see static/page_state.js.
        events: names of events that the script triggers.
    """

    def __init__(self, script: str, function: str, events: Sequence[str] = (), **kwargs):
        emit = ", ".join(f'{name}: () => trigger("{name}")' for name in events)  # quoted: so Gradio knows of them
        connect = f"{function}({{ props, watch, emit: {{ {emit} }} }})"
        start = f"{import_expression(script)}.then((module) => module.{connect});"
        super().__init__({}, html_template="<i hidden></i>", js_on_load=start, apply_default_css=False, **kwargs)

    def preprocess(self, payload: dict) -> dict:
        return payload

    def postprocess(self, value: dict) -> dict:
        return value

    def api_info(self) -> dict[str, str]:
        return {"type": "object"}


class PageLayout:
    """The page's components, built in the open `gr.Blocks`.

    Args:
        catalog: the models to choose from.
    """

    def __init__(self, catalog: ModelCatalog):
        self.state = StateComponent(
            "static/page_state.js", "connectState", ("sync", "halt", "localize", "wake"), elem_id="state"
        )
        self.update = StateComponent("static/page_actions.js", "connectUpdate", elem_id="state-update")
        header = (
            ExplanationDepthButtons(elem_id="mode"),
            ModelPicker(catalog.names, catalog.allows_opening, elem_id=shared_constants.PICKER),
        )
        component_of_widgets(
            f'<h1 id="title">{escape_text(TITLE)}</h1>',
            CollapseButton(text=_("Menu"), elem_id="more-of-header"),
            *header,
            fill_template(FACTS_SUMMARY, name=_("about the model")),
            TextBlock(elem_id=shared_constants.FACTS),
            "</details>",
            SearchButton(elem_id="search"),
            LessonListButton(elem_id="lessons"),
            SlidesMenu(elem_id="present"),
            ClassSessionPanel(elem_id="room"),
            fill_template(COPY_SUMMARY, name=_("Share")),
            button_markup("share", _("Copy link")),
            button_markup("copy-python", _("Copy as Python")),
            button_markup("save-png", _("Save figure as PNG")),
            button_markup("save-svg", _("Save figure as SVG")),
            button_markup("save-numbers", _("Save figure’s numbers as CSV")),
            "</div></details>",
            fill_template(PAGE_MENU, name=_("page menu")),
            LanguageList(elem_id="language"),
            button_markup("theme", _("Light / dark")),
            "</div></details>",
            elem_id="header",
        )
        self.build_prompt()
        overlays = (
            LessonPanel(elem_id=shared_constants.LESSON),
            PresentationScreen(elem_id="stage"),
            WalkthroughPlayer(elem_id="walk"),
        )
        component_of_widgets(
            *overlays,
            OpenModelForm(catalog.allows_paths, elem_id=shared_constants.OPEN_MODEL),
            TokenStrip(elem_id=shared_constants.STRIP),
            TokenStrip(run="b", elem_id=shared_constants.STRIP_B),
            view_navigation_markup(numbers_views(has_own_module=bool(catalog.own_module))),
            elem_id="tokens",
        )
        with gr.Row(elem_id="columns", equal_height=False):
            with gr.Column(scale=7, min_width=340):
                self.build_views()
            with gr.Column(scale=3, min_width=330, elem_id="generation"):
                self.build_next_token()

    def build_prompt(self):
        """Build the row of the prompt."""
        with gr.Row(elem_id="prompt-row"):
            component_of_widgets(ChatForm(elem_id=shared_constants.CHAT), elem_id="chat-place")
            self.prompt = gr.Textbox(
                label=_("Your text"),
                placeholder=_("Type the beginning of a story"),
                lines=1,
                max_lines=4,
                interactive=True,
                elem_id="prompt",
                scale=8,
            )
            self.run = gr.Button(_("Run"), variant="primary", scale=0, min_width=90, elem_id="run")
            examples = "".join(
                f'<button type="button" data-text="{escape_text(text)}">{escape_text(translate(name))}</button>'
                for name, text in EXAMPLES.items()
            )
            menu = fill_template('<details class="menu"><summary>{name}</summary>', name=_("Examples"))
            component_of_widgets(f"{menu}<div>{examples}</div></details>", elem_id="examples")

    def build_views(self):
        """Build the place of the view and what stands above it."""
        component_of_widgets(
            TrainingStepSlider(elem_id=shared_constants.SERIES),
            TextBlock(elem_id=shared_constants.PROBLEM),
            TextBlock(elem_id=shared_constants.VOCABULARY),
            ActiveInterventionList(elem_id=shared_constants.CHANGES),
            '<div id="view"></div>',
            GlossaryList(elem_id="glossary"),
            button_markup("open-file", _("Open a saved file")),
            elem_id="main",
        )

    def build_next_token(self):
        """Build the next-token table and the generation settings."""
        component_of_widgets(
            NextTokenGuessForm(elem_id=shared_constants.GUESS),
            fill_template(
                NEXT_TOKEN_HEADER,
                title=_("Next token"),
                chance=_("chance"),
                tick=_("model’s own"),
            ),
            NextTokenTable(elem_id=shared_constants.NEXT_TOKEN),
            NextTokenSummary(elem_id=shared_constants.NEXT_TOKEN_WORDS),
            elem_id="answer",
        )
        with gr.Column(elem_id="sampling"):  # on a narrow screen a sheet above the bar
            component_of_widgets(
                fill_template(LIKELIEST, name=_("Next token"), tick=_("model’s own")), elem_id="likeliest"
            )
            self.temperature = make_slider("temperature", 0.05, _("← sure · daring →"))
            with gr.Row(elem_id="limit"):
                self.top_k = make_slider("top_k", 1, limits=(1, MAX_SLIDER_TOP_K))
                self.all_tokens = gr.Checkbox(
                    not DEFAULTS.top_k, label=_("all"), container=False, scale=0, min_width=60, elem_id="all-tokens"
                )
        with gr.Column(elem_id="bar"):  # in reach wherever the page was scrolled to
            component_of_widgets(
                NextTokenPreview(elem_id=shared_constants.BRIEF),
                toggle_button_markup("sliders", _("Chances, settings")),
                elem_id="tail",
            )
            with gr.Row(elem_classes="buttons"):
                self.step = gr.Button(_("Step"), min_width=60, elem_id="step")
                self.generate = gr.Button(_("Generate"), variant="primary", min_width=80, elem_id="generate")
                self.max_new_tokens = make_integer_box("max_new_tokens", _("tokens"))
                self.stop = gr.Button(_("Stop"), min_width=60, elem_id="stop")
        with gr.Row(elem_classes="buttons", elem_id="again"):
            component_of_widgets(fill_template("<h2>{title}</h2>", title=_("Text so far")), elem_id="text-so-far")
            self.undo = gr.Button(_("Undo"), size="sm", min_width=70, elem_id="undo")
            self.regenerate = gr.Button(_("Another ending"), size="sm", min_width=90, elem_id="regenerate")
            self.compare = gr.Button(_("Compare methods"), size="sm", min_width=90, elem_id="compare")
        component_of_widgets(
            PromptAdviceLine(elem_id=shared_constants.ADVICE),
            GeneratedText(elem_id=shared_constants.STORY),
            GenerationPlayer(elem_id=shared_constants.PLAYBACK),
            ContinuationTree(elem_id=shared_constants.BRANCHES),
            elem_id="written",
        )
        component_of_widgets(
            ExplanationButton(field="why", question=_("Why this token?"), elem_id=shared_constants.WHY),
            ExplanationButton(
                field="stand_ins",
                question=_("Which parts stand in for one another?"),
                elem_id=shared_constants.STAND_INS,
            ),
            elem_id="questions",
        )
        with gr.Column(elem_id="more-settings"):
            component_of_widgets(
                toggle_button_markup("more", _("More")), toggle_button_markup("stages", _("Stages")), elem_id="more-row"
            )
            presets = {translate(name): settings for name, settings in PRESETS.items()}
            detail = '<div id="next-token-more" class="distribution"></div>'
            detail = f'<div data-widget="distribution" data-mounted>{detail}</div>'
            component_of_widgets(detail, SamplingPresetButtons(presets, elem_id="presets"), elem_id="draw")
            self.top_p = make_slider(
                "top_p", 0.01, _("Keeps the likeliest tokens until they add up to this; 1 keeps all.")
            )
            self.min_p = make_slider(
                "min_p", 0.01, _("Drops tokens below this share of the likeliest one’s probability; 0 keeps all.")
            )
            self.repetition_penalty = make_slider(
                "repetition_penalty", 0.05, _("Makes tokens that the text already has less likely; 1 changes nothing.")
            )
            self.seed = make_integer_box("seed", _("seed"), _("The same seed gives the same random numbers."))
            self.stop_strings = gr.Textbox(
                DEFAULTS.stop_strings,
                label=_("stop text"),
                info=_("Generation ends where this text appears; empty for none."),
                max_length=MAX_STOP_CHARS,
                interactive=True,
            )

    @property
    def settings(self) -> dict[str, gr.components.Component]:
        """The component of each field of `GenerationSettings`."""
        return {name: getattr(self, name) for name in DEFAULTS.as_dict()}


def component_of_widgets(*parts: HtmlWidget | str, elem_id: str) -> gr.HTML:
    """Build a component of widgets and markup, one below the other."""
    markup = "".join(part.markup if isinstance(part, HtmlWidget) else part for part in parts)
    return gr.HTML(markup, elem_id=elem_id, elem_classes="region", padding=False, apply_default_css=False)


def button_markup(elem_id: str, text: str, name: str = "") -> str:
    """Return the markup of a plain button; `name` says what a sign means."""
    label = f' aria-label="{escape_text(name)}" title="{escape_text(name)}"' if name else ""
    return f'<button type="button" id="{elem_id}" class="plain"{label}>{escape_text(text)}</button>'


MENUS = {"try": N_("Try"), "further": N_("Further")}  # groups of views that open from a button


def view_navigation_markup(views: Sequence[View]) -> str:
    """Return the markup of the row that leads to the views: tabs, menus, and the steps of the story."""
    menus = "".join(
        view_menu_markup(translate(title), [view for view in views if view.group == group])
        for group, title in MENUS.items()
    )
    tabs = view_tabs_markup("views", _("views"), [view for view in views if view.group not in MENUS])
    steps = view_tabs_markup("steps", _("steps"), STORY_STEPS)
    begin = fill_template('<nav id="navigation" aria-label="{views}">', views=_("views"))
    return "".join((begin, tabs, menus, steps, RunComparisonControls(elem_id=shared_constants.RUNS).markup, "</nav>"))


def view_menu_markup(title: str, views: Sequence[View]) -> str:
    """Return the markup of a button that opens a list of views."""
    items = (
        f'<button type="button" data-view="{view.name}">{escape_text(translate(view.title))}</button>' for view in views
    )
    summary = f'<summary>{escape_text(title)}<span class="open-view"></span></summary>'
    return f'<details class="menu view-menu">{summary}<div>{"".join(items)}</div></details>'


def toggle_button_markup(name: str, text: str) -> str:
    """Return the markup of a button that shows and hides a part of the page, and is remembered by the browser."""
    return f'<button type="button" class="fold" data-shows="{name}" aria-expanded="false">{escape_text(text)}</button>'


def view_tabs_markup(elem_id: str, name: str, views: Sequence[View]) -> str:
    """Return the markup of a row of tabs, one for each view."""
    tabs = (
        f'<button type="button" role="tab" tabindex="-1" data-view="{view.name}"'
        f' aria-controls="{element_id(view.name, shared_constants.TAB)}">{escape_text(translate(view.title))}</button>'
        for view in views
    )
    return f'<div id="{elem_id}" class="tabs" role="tablist" aria-label="{escape_text(name)}">{"".join(tabs)}</div>'


def make_slider(
    name: str, step: float, info: str | None = None, limits: tuple[float, float] | None = None
) -> gr.Slider:
    """Return a slider of a generation setting, with its default and its range, or other limits."""
    low, high = limits or RANGES[name]
    return gr.Slider(
        low,
        high,
        getattr(DEFAULTS, name),
        step=step,
        label=translate(SETTING_LABELS[name]),
        info=info,
        interactive=True,
        elem_id=name,
    )


def make_integer_box(name: str, label: str, info: str | None = None) -> gr.Number:
    """Return a box for an integer generation setting, with its default and range."""
    low, high = RANGES[name]
    return gr.Number(
        getattr(DEFAULTS, name),
        label=label,
        info=info,
        precision=0,
        minimum=low,
        maximum=high,
        min_width=90,
        interactive=True,
        elem_id=name,
    )


EMPTY_LINE = "\u00a0"  # the room of a sentence that comes with the run


def view_markup(view: View) -> str:
    """Return a view's markup in the current language, without its content."""
    tools: list[HtmlWidget] = []
    if view.name == "patching":
        tools.append(PromptPairButtons(PROMPT_PAIRS, elem_id="prompt-pairs"))
    tools.append(SelectionDropdowns(elem_id=element_id(view.name, CHOOSERS)))
    if view.name in WALKS:
        tools.append(WalkthroughButton(WALKS[view.name], elem_id=element_id(view.name, WALK)))
    if view.intervention_controls:
        tools.append(InterventionControls(elem_id=element_id(view.name, WHAT_IFS)))
    if view.direction_spec:
        tools.append(DirectionPromptBoxes(elem_id=element_id(view.name, LISTS)))
    tools.append(TextBlock(kind="formula", elem_id=element_id(view.name, FORMULA)))
    if view.code:
        tools.append(TextBlock(kind="code", elem_id=element_id(view.name, CODE)))
    copies_python = fill_template(COPY_PYTHON, name=_("Copy as Python")) if view.code else ""
    text = EMPTY_LINE if view.sentence and not view.is_comparison else translate(view.description)
    words = TextBlock(text, elem_id=element_id(view.name, WORDS)).markup
    after: list[HtmlWidget] = []
    if view.continuation_text:
        after.append(TextBlock(kind="formula", elem_id=element_id(view.name, WRITTEN)))
    if view.numbers_view_link:
        after.append(NumbersViewLink(elem_id=element_id(view.name, IN_FULL)))
    panels = join_markup([panel_widget(view.name, panel) for panel in view.panels])
    return (
        f'<section id="{element_id(view.name, TAB)}" class="tabitem" role="tabpanel">{words}'
        f'<div class="view-tools">{join_markup(tools)}{copies_python}</div>'
        f'<div class="panels">{panels}</div>{join_markup(after)}'
        "</section>"
    )


def join_markup(widgets: list[HtmlWidget]) -> str:
    """Return the markup of several widgets."""
    return "".join(widget.markup for widget in widgets)


def panel_widget(view: str, panel: Panel) -> HtmlWidget:
    """Return the widget of a panel."""
    panel_options = {
        "title": translate(panel.title),
        "elem_id": element_id(view, panel.name),
        "elem_classes": [f"panel-{panel.width}", *["once"] * panel.is_selection_independent],
    }
    if panel.kind == "head_grid":
        return HeadGridWidget(selects=panel.click_selects, **panel_options)
    if panel.kind == "head_table":
        return HeadTableWidget(selects=panel.click_selects, **panel_options)
    if panel.kind == "model_map":
        return ModelMapWidget(height=panel.height, min_width=panel.min_width, **panel_options)
    if panel.kind == "whole_model":
        return WholeModelWidget(**panel_options)
    size = {"height": panel.height, "min_plot_width": panel.min_width}
    return PlotlyFigureWidget(
        selects=panel.click_selects,
        to_steps=panel.click_opens_checkpoint,
        chooser=panel.chooser,
        **size,
        **panel_options,
    )
