"""The page as an app: its widgets, its events, its looks, and the functions it offers to programs."""

import gc
from collections.abc import Callable
from functools import wraps
from pathlib import Path

import gradio as gr

from explorer.answers import Answers
from explorer.api import Api
from explorer.events import Events
from explorer.layout import TITLE, Layout
from explorer.library import Library
from explorer.presenter import Presenter
from explorer.style import DARK, LIGHT, MONO_FONTS, SANS_FONTS

TUNE = "(temperature, top_k, max_new_tokens, seed) => Explorer.tune({temperature, top_k, max_new_tokens, seed})"


class Page:
    """The Gradio app on a library's models.

    Args:
        library: the models.
        checkpoint: name of the one a new visitor sees.
    """

    def __init__(self, library: Library, checkpoint: str):
        self.library, self.checkpoint = library, checkpoint

    def build(self) -> gr.Blocks:
        with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as blocks:
            presenter = Presenter(self.library)
            self.layout = Layout(self.library.checkpoints, self.checkpoint, Answers(presenter).functions)
            self.events = Events(self.layout, presenter, self.checkpoint)
            connect(blocks, self.layout, self.events)
            api = Api(self.library, self.checkpoint)
            gr.api(told_to_programs(api.explore), api_name="explore")
            gr.api(told_to_programs(api.generate), api_name="generate")
        return blocks.queue(default_concurrency_limit=8)

    def launch(self, **options) -> gr.Blocks:
        """Build and serve; `options` are those of `gr.Blocks.launch`."""
        blocks = self.build()
        gc.collect()
        gc.freeze()  # what is loaded by now stays: without it the collector walks it all again, 70 ms at a time
        blocks.launch(
            css=Path(__file__).with_suffix(".css").read_text(encoding="utf-8"),
            theme=page_theme(),
            footer_links=["api"],
            ssr_mode=False,
            run_history=False,  # would keep every event's data in the browser
            **options,
        )
        return blocks


def connect(blocks: gr.Blocks, layout: Layout, events: Events):
    """Say which of Gradio's events asks what."""
    quiet = {"show_progress": "hidden", "api_visibility": "private"}
    run = [layout.update, layout.strip, layout.story]
    model = [layout.facts, layout.picker, layout.top_k]

    blocks.load(events.on_load, None, [*run, *model, layout.prompt, layout.tabs, *layout.settings], **quiet)
    step = layout.step.click(events.on_step, layout.state, run, **quiet)
    writing = layout.write.click(events.on_generate, layout.state, run, **quiet)
    asking = [layout.prompt.submit, layout.run.click, layout.picker.input]
    stopping = [layout.stop.click, *asking, *(button.click for button, _ in layout.examples)]
    gr.on(stopping, None, cancels=[step, writing])  # before the events that ask: Gradio takes a trigger's in order
    ask = {"inputs": [layout.prompt, layout.picker, layout.state], "outputs": [*run, *model], **quiet}
    gr.on(asking, events.on_prompt, **ask)
    for button, text in layout.examples:
        button.click(lambda text=text: text, None, layout.prompt, **quiet).then(events.on_prompt, **ask)

    tuned = [setting.input for setting in layout.settings]
    tuned += [layout.temperature.release, layout.top_k.release]  # a slider's reset button makes no input
    gr.on(tuned, None, layout.settings, None, js=TUNE)
    layout.state.open(events.on_open, layout.state, layout.tabs, **quiet)
    for name, tab in layout.tab.items():
        tab.select(None, None, None, js=f"() => Explorer.open({name!r})")

    layout.share.click(None, None, None, js="() => Explorer.copyLink()")
    layout.theme.click(None, None, None, js="() => Explorer.toggleTheme()")


def page_theme() -> gr.themes.Base:
    """Gradio's plainest theme on the backgrounds that the figures' colour scales begin at; no font is fetched."""
    theme = gr.themes.Base(
        primary_hue="indigo", neutral_hue="slate", spacing_size="sm", font=SANS_FONTS, font_mono=MONO_FONTS
    )
    return theme.set(body_background_fill=LIGHT.background, body_background_fill_dark=DARK.background)


def told_to_programs(function: Callable) -> Callable:
    """The function with its ValueErrors turned into errors that a client gets to read."""

    @wraps(function)
    def wrapped(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from None

    return wrapped
