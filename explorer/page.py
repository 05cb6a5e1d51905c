"""The page: what stands where, and which event asks what."""

import html
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import gradio as gr

from explorer.api import Api
from explorer.components.choosers import Choosers
from explorer.components.figure import Figure
from explorer.components.head_grid import HeadGrid
from explorer.components.state import State
from explorer.components.state_update import StateUpdate
from explorer.components.story import Story
from explorer.components.token_strip import TokenStrip
from explorer.components.words import Words
from explorer.library import Library
from explorer.presenter import Presenter, Question
from explorer.selection import Selection
from explorer.settings import LIMITS, GenerationSettings
from explorer.style import DARK, LIGHT, MONO_FONTS, SANS_FONTS
from explorer.views import VIEWS
from explorer.views.view import Panel
from model.generation import generate

TITLE = "TransformerLM Explorer"
EXAMPLES = {
    "a story": "Once upon a time there was a fox who wanted the moon.",
    "copy a name": "Zorblat met Mimi. Zorblat said hello to Mimi. Then Zorb",
    "who is she?": "Lily gave Tom an apple because she was kind. Tom thanked",
    "a list": "One day, two birds, three cats and four",
}
FIRST_PROMPT = EXAMPLES["a story"]
SECONDS_A_TOKEN = 1 / 18  # the pace at which new tokens are shown: eyes and browsers follow this, not 400 a second

TUNE = "(temperature, top_k, max_new_tokens, seed) => Explorer.tune({temperature, top_k, max_new_tokens, seed})"


class Page:
    """The Gradio app on a library's models.

    Args:
        library: the models.
        checkpoint: name of the one a new visitor sees.
    """

    def __init__(self, library: Library, checkpoint: str):
        self.library, self.presenter, self.checkpoint = library, Presenter(library), checkpoint

    def build(self) -> gr.Blocks:
        with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as blocks:
            self.state, self.update = State(elem_id="state"), StateUpdate(elem_id="state-update")
            self.place_header()
            self.place_prompt()
            with gr.Row(elem_id="columns"):
                with gr.Column(scale=7, min_width=340):
                    self.place_views()
                with gr.Column(scale=3, min_width=330, elem_id="generation"):
                    self.place_generation()
            self.connect(blocks)
            api = Api(self.library, self.checkpoint)
            gr.api(told_to_programs(api.explore), api_name="explore")
            gr.api(told_to_programs(api.generate), api_name="generate")
        return blocks.queue(default_concurrency_limit=8)

    def launch(self, **options) -> gr.Blocks:
        """Build and serve; `options` are those of `gr.Blocks.launch`."""
        blocks = self.build()
        blocks.launch(
            css=Path(__file__).with_suffix(".css").read_text(encoding="utf-8"),
            theme=page_theme(),
            footer_links=["api"],
            ssr_mode=False,
            run_history=False,  # would keep every event's data in the browser
            **options,
        )
        return blocks

    # What stands where

    def place_header(self):
        with gr.Row(elem_id="header"):
            gr.Markdown(f"# {TITLE}", elem_id="title")
            self.picker = gr.Dropdown(
                self.library.checkpoints,
                value=self.checkpoint,
                label="model",
                show_label=False,
                container=False,
                interactive=True,
                elem_id="picker",
                min_width=160,
                scale=0,
            )
            self.facts = Words(elem_id="facts")
            self.share = gr.Button("Copy link", size="sm", scale=0, min_width=90)
            self.theme = gr.Button("Light / dark", size="sm", scale=0, min_width=100)

    def place_prompt(self):
        with gr.Row(elem_id="prompt-row"):
            self.prompt = gr.Textbox(
                label="prompt",
                show_label=False,
                container=False,
                placeholder="Type the beginning of a story",
                lines=1,
                max_lines=4,
                interactive=True,
                elem_id="prompt",
                scale=8,
            )
            self.run = gr.Button("Run", variant="primary", scale=0, min_width=90, elem_id="run")
            with gr.Row(elem_id="examples"):
                gr.Markdown("try")
                self.examples = [
                    (gr.Button(name, size="sm", scale=0, min_width=60), text) for name, text in EXAMPLES.items()
                ]
        self.strip = TokenStrip(elem_id="strip")

    def place_views(self):
        self.tab, self.words, self.formulas, self.choosers, self.pictures = {}, {}, {}, {}, {}
        with gr.Tabs(elem_id="views") as self.tabs:
            for view in VIEWS:
                with gr.Tab(view.title, id=view.name) as self.tab[view.name]:
                    self.words[view.name] = Words(view.words)
                    self.choosers[view.name] = Choosers()
                    self.formulas[view.name] = Words(kind="formula")
                    with gr.Row(elem_classes="panels"):
                        for panel in view.panels:
                            self.pictures[view.name, panel.name] = place_panel(view.name, panel)

    def place_generation(self):
        defaults = GenerationSettings()
        gr.Markdown("### Next token")
        self.prediction_words = Words(elem_id="prediction-words")
        self.prediction = Figure(height=264, elem_id="prediction")
        self.temperature = gr.Slider(
            *LIMITS["temperature"], defaults.temperature, step=0.05, label="temperature", interactive=True
        )
        self.top_k = gr.Slider(0, 4096, defaults.top_k, step=1, label="top-k (0 keeps all)", interactive=True)
        with gr.Row():
            self.max_new_tokens, self.seed = (
                gr.Number(
                    getattr(defaults, name), label=label, precision=0, minimum=LIMITS[name][0], maximum=LIMITS[name][1],
                    min_width=90, interactive=True,
                )
                for name, label in (("max_new_tokens", "new tokens"), ("seed", "seed"))
            )  # fmt: skip
        with gr.Row():
            self.step = gr.Button("Step", min_width=70, elem_id="step")
            self.write = gr.Button("Generate", variant="primary", min_width=90, elem_id="generate")
            self.stop = gr.Button("Stop", min_width=70, elem_id="stop")
        self.story = Story(elem_id="story")
        self.settings = [self.temperature, self.top_k, self.max_new_tokens, self.seed]

    # Which event asks what

    def connect(self, blocks: gr.Blocks):
        """Events take the state alone. A new run changes the state, and that makes the browser ask for the pictures:
        there is one way to draw them."""
        quiet = {"show_progress": "hidden", "api_visibility": "private"}
        run = [self.update, self.strip, self.story]
        model = [self.facts, self.picker, self.top_k]
        prediction = [self.prediction, self.prediction_words]
        views = [*self.words.values(), *self.formulas.values(), *self.choosers.values(), *self.pictures.values()]

        blocks.load(self.on_load, None, [*run, *model, self.prompt, self.tabs, *self.settings], **quiet)
        ask = {"inputs": [self.prompt, self.picker, self.state], "outputs": [*run, *model], **quiet}
        gr.on([self.prompt.submit, self.run.click, self.picker.input], self.on_prompt, **ask)
        for button, text in self.examples:
            button.click(lambda text=text: text, None, self.prompt, **quiet).then(self.on_prompt, **ask)

        latest = {"inputs": self.state, "trigger_mode": "always_last", **quiet}
        self.state.show(self.on_show, outputs=[*prediction, *views], **latest)
        self.state.pick(self.on_pick, outputs=[*prediction, *views], **latest)
        self.state.tune(self.on_tune, outputs=prediction, **latest)
        gr.on([setting.input for setting in self.settings], None, self.settings, None, js=TUNE)
        for name, tab in self.tab.items():
            tab.select(None, None, None, js=f"() => Explorer.open({name!r})")

        step = self.step.click(self.on_step, self.state, [*run, *prediction], **quiet)
        writing = self.write.click(self.on_generate, self.state, [*run, *prediction], **quiet)
        self.stop.click(None, None, None, js="() => Explorer.show()", cancels=[step, writing])
        self.share.click(None, None, None, js="() => Explorer.copyLink()")
        self.theme.click(None, None, None, js="() => Explorer.toggleTheme()")

    def on_load(self, request: gr.Request) -> dict:
        """What a visitor sees first: what the URL says, or else the first example."""
        first = {"checkpoint": self.checkpoint, "text": FIRST_PROMPT}
        asked = dict(request.query_params)
        settings = GenerationSettings.parse(asked)
        try:
            question = self.presenter.restored(first | asked)
        except ValueError as error:
            warn(error)
            question = self.presenter.restored(first)
        prompt, _ = self.presenter.text(question.run)
        return {
            **self.show_run(question, settings.as_dict()),
            **self.show_model(question.run.checkpoint, settings.top_k),
            self.prompt: prompt,
            self.tabs: gr.Tabs(selected=question.selection.view),
            self.temperature: settings.temperature,
            self.max_new_tokens: settings.max_new_tokens,
            self.seed: settings.seed,
        }

    def on_prompt(self, prompt: str, checkpoint: str, state: dict) -> dict:
        """A new run, looked at as the last one was, at its last token."""
        try:
            run = self.presenter.run_of(checkpoint, prompt)
            question = self.presenter.at_end(Question(run, Selection.parse(state)))
        except ValueError as error:
            warn(error)
            return {self.picker: state.get("checkpoint", self.checkpoint)}
        if run.dropped:
            seen = len(run.prompt)
            gr.Warning(
                f"The prompt has {run.dropped + seen:,} tokens; the model sees {seen} at once: the last are used."
            )
        return self.show_run(question) | self.show_model(checkpoint, GenerationSettings.parse(state).top_k)

    def on_show(self, state: dict) -> dict:
        """The whole open view and the prediction, after a new run or a change of view."""
        return self.shown(state, newly=True)

    def on_pick(self, state: dict) -> dict:
        """What of them follows the selection, after that changed."""
        return self.shown(state, newly=False)

    def shown(self, state: dict, newly: bool) -> dict:
        question = self.asked(state)
        if question is None:
            return {self.prediction: gr.skip()}
        return self.show_view(question, newly) | self.show_prediction(question, GenerationSettings.parse(state))

    def on_tune(self, state: dict) -> dict:
        """The prediction, after a slider was moved; nothing is drawn anew from it."""
        question = self.asked(state)
        if question is None:
            return {self.prediction: gr.skip()}
        return self.show_prediction(question, GenerationSettings.parse(state))

    def on_step(self, state: dict) -> Iterator[dict]:
        yield from self.written(state, replace(GenerationSettings.parse(state), max_new_tokens=1))

    def on_generate(self, state: dict) -> Iterator[dict]:
        yield from self.written(state, GenerationSettings.parse(state))

    def written(self, state: dict, settings: GenerationSettings) -> Iterator[dict]:
        """The run and its prediction after each new token, at a pace that can be followed."""
        question = self.asked(state)
        if question is None:
            return
        lm, tokenizer = self.library.model(question.run.checkpoint)
        steps = generate(lm, question.run.token_ids, stop_tokens={tokenizer.end_of_text}, **settings.as_dict())
        shown = 0.0
        for done, step in enumerate(steps, start=1):
            run = replace(question.run, generated=(*question.run.generated, step.token_id))
            question = self.presenter.at_end(replace(question, run=run))
            last = done == settings.max_new_tokens or step.token_id == tokenizer.end_of_text
            time.sleep(max(0.0, shown + SECONDS_A_TOKEN - time.monotonic()))
            shown = time.monotonic()
            yield self.show_run(question, ask=last) | self.show_prediction(question, settings)

    def asked(self, state: dict) -> Question | None:
        """The state's question if it makes sense; else None, and a warning says why not."""
        try:
            question = Question.parse(state)
            self.presenter.trace(question.run)
        except ValueError as error:
            warn(error)
            return None
        return question

    def show_run(self, question: Question, settings: dict[str, Any] | None = None, ask: bool = True) -> dict:
        """The tokens, the text, and the change of state; with `ask` the browser asks for the pictures of it."""
        prompt, generated = self.presenter.text(question.run)
        selection = question.selection
        change = question.run.as_dict() | {"query": selection.query, "key": selection.key}
        if settings is not None:
            change = question.as_dict() | settings
        return {
            self.update: {"change": change, "ask": ask},
            self.strip: TokenStrip.pack(**self.presenter.strip(question.run)),
            self.story: {"prompt": prompt, "generated": generated},
        }

    def show_model(self, checkpoint: str, top_k: int) -> dict:
        lm, _ = self.library.model(checkpoint)
        most = lm.config.vocab_size
        return {
            self.facts: self.presenter.facts(checkpoint),
            self.picker: checkpoint,
            self.top_k: gr.Slider(value=min(top_k, most), maximum=most),
        }

    def show_view(self, question: Question, newly: bool) -> dict:
        view, content = self.presenter.view(question, newly)
        pictures = {self.pictures[view.name, name]: picture for name, picture in content.pictures.items()}
        return pictures | {
            self.words[view.name]: content.words,
            self.formulas[view.name]: content.formula,
            self.choosers[view.name]: content.choices,
        }

    def show_prediction(self, question: Question, settings: GenerationSettings) -> dict:
        picture, words = self.presenter.next_token(question, settings)
        return {self.prediction: picture, self.prediction_words: words}


def page_theme() -> gr.themes.Base:
    """Gradio's plainest theme on the backgrounds that the figures' colour scales begin at; no font is fetched."""
    theme = gr.themes.Base(
        primary_hue="indigo", neutral_hue="slate", spacing_size="sm", font=SANS_FONTS, font_mono=MONO_FONTS
    )
    return theme.set(body_background_fill=LIGHT.background, body_background_fill_dark=DARK.background)


def place_panel(view: str, panel: Panel) -> Figure | HeadGrid:
    """The widget of a panel."""
    place = {
        "title": panel.title,
        "selects": panel.selects,
        "elem_id": f"{view}-{panel.name}",
        "elem_classes": f"panel-{panel.width}",
    }
    if panel.kind == "head_grid":
        return HeadGrid(**place)
    return Figure(height=panel.height, min_plot_width=panel.min_width, **place)


def warn(error: ValueError):
    """Show an error's sentence as text; Gradio would read it as HTML."""
    gr.Warning(html.escape(str(error)))


def told_to_programs(function: Callable) -> Callable:
    """The function with its ValueErrors turned into errors that a client gets to read."""

    @wraps(function)
    def wrapped(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from None

    return wrapped
