"""Which of Gradio's events asks what."""

from collections.abc import Callable, Iterable
from functools import wraps

import gradio as gr

from explorer.web.assets import page_script
from explorer.web.events.generation_events import GenerationEvents
from explorer.web.events.run_events import Events
from explorer.web.layout.page_layout import Layout

MOST_AT_ONCE = 8  # of texts that are written, each by an event of its own: each has its decoder and its keys and values


def connect(blocks: gr.Blocks, layout: Layout, events: Events, writing: GenerationEvents):
    """Say which of Gradio's events asks what."""
    quiet = {"show_progress": "hidden", "api_visibility": "private"}
    settings, buttons = list(layout.sampling.settings.values()), layout.buttons
    model = [layout.facts, layout.vocabulary, layout.picker, layout.sampling.top_k]

    tabs = [layout.steps, layout.tabs]
    first = [layout.update, *model, layout.prompt, *tabs, *settings]
    shown = blocks.load(
        _or_nothing(events.on_load), layout.state, first, js=page_script("await page.atFirst()"), **quiet
    )
    shown.then(None, layout.prompt, layout.prompt, js=page_script("page.promptAtFirst(text)", "text"))
    seen = {"js": page_script("page.beginWriting()")} | quiet  # of what is written as much as is shown
    seen["concurrency_limit"] = MOST_AT_ONCE
    makes = {
        buttons.step: buttons.step.click(writing.on_step, layout.state, layout.update, **seen),
        buttons.generate: buttons.generate.click(writing.on_generate, layout.state, layout.written, **seen),
        buttons.regenerate: buttons.regenerate.click(
            writing.on_regenerate, layout.state, [layout.written, layout.sampling.seed], **seen
        ),
        buttons.compare: buttons.compare.click(writing.on_compare, layout.state, layout.written, **seen),
    }
    for button in makes:  # one thing is written at a time
        button.click(None, cancels=[event for other, event in makes.items() if other is not button])
    layout.guess.step(None, cancels=list(makes.values()))
    making = [*makes.values(), layout.guess.step(writing.on_step, layout.state, layout.update, **seen)]
    for event in making:
        event.then(None, None, None, js=page_script("page.wrote()"))
    asking = [layout.prompt.submit, layout.run.click]
    stopping = [
        buttons.stop.click,
        buttons.undo.click,
        *asking,
        layout.picker.input,
        layout.open_model.input,
        *(button.click for button, _ in layout.examples),
    ]
    gr.on(stopping, None, cancels=making)  # before the events that ask: Gradio takes a trigger's in order
    for trigger in (layout.state.move, layout.state.halt, layout.advice.apply):
        trigger(None, cancels=making)
    moved = layout.state.move(_or_nothing(writing.on_move), layout.state, [layout.update, layout.prompt], **quiet)
    moved.then(None, layout.update, None, js=page_script("page.onMoved(update)", "update"))
    ask = {"inputs": [layout.prompt, layout.picker, layout.state], "outputs": [layout.update, *model]} | quiet
    ask |= {"js": page_script("[prompt, checkpoint, await page.begin()]", "prompt, checkpoint")}
    on_prompt, on_model = _or_nothing(events.on_prompt), _or_nothing(events.on_model)
    gr.on(asking, on_prompt, **ask)
    with_own = page_script("[prompt, checkpoint, await page.beginWith(checkpoint)]", "prompt, checkpoint")
    layout.picker.input(on_model, **ask | {"js": with_own})
    opened = {"inputs": [layout.prompt, layout.open_model, layout.state], "js": with_own}
    layout.open_model.input(on_model, **ask | opened)
    for button, text in layout.examples:
        button.click(lambda text=text: text, None, layout.prompt, **quiet).then(_or_nothing(events.on_example), **ask)
    layout.advice.apply(_take, layout.advice, layout.prompt, **quiet).then(on_prompt, **ask)

    tuned = [setting.input for setting in settings]
    tuned += [setting.release for setting in settings if isinstance(setting, gr.Slider)]  # its reset makes no input
    tuned.append(layout.sampling.stop_strings.blur)  # text pasted into the fresh box makes no input either
    gr.on(tuned, None, settings, None, js=_tune(layout.sampling.settings))
    layout.sampling.presets.choose(None, None, settings, js=_tuned_to(layout.sampling.settings))
    last = {"trigger_mode": "always_last"} | quiet  # Back and Forward may come faster than answers
    layout.state.open(None, None, tabs, js=page_script("page.openedTabs()"))
    layout.state.follow(_or_nothing(events.on_follow), layout.state, [*model, layout.prompt, *settings], **last)
    for name, tab in layout.tab.items():
        tab.select(None, None, None, js=page_script(f"page.openedTab({name!r})"))

    layout.share.click(None, None, None, js=page_script("page.copyLink()"))
    layout.open_file.click(None, None, None, js=page_script("page.openFile()"))
    layout.theme.click(None, None, None, js=page_script("page.toggleTheme()"))


def _tune(names: Iterable[str]) -> str:
    """Script that writes settings, given in the order of their names, into the state."""
    listed = ", ".join(names)
    return page_script(f"page.tune({{ {listed} }})", listed)


def _tuned_to(names: Iterable[str]) -> str:
    """Script that reads settings from the state, in the order of their names."""
    return page_script(f"{list(names)}.map((name) => page.state[name])")


def _take(offer: str) -> str:
    return offer


def _or_nothing(handler: Callable) -> Callable:
    """The handler of an event, where an answer of nothing, as to what was refused, changes nothing: of several widgets
    Gradio would take it for too few values."""

    @wraps(handler)
    def wrapped(*given):
        return handler(*given) or gr.skip()

    return wrapped
