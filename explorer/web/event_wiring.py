"""Wiring of Gradio's events to their handlers."""

from collections.abc import Callable, Iterable
from functools import wraps

import gradio as gr

from explorer.web.assets import page_script
from explorer.web.events.generation_events import GenerationHandlers
from explorer.web.events.run_events import RunHandlers
from explorer.web.layout.page_layout import PageLayout

MAX_CONCURRENT_GENERATIONS = 8  # generations: each has a decoder and a KV cache


def wire_events(
    blocks: gr.Blocks, layout: PageLayout, run_handlers: RunHandlers, generation_handlers: GenerationHandlers
):
    """Connect Gradio's events to their handlers."""
    quiet = {"show_progress": "hidden", "api_visibility": "private"}
    settings, buttons = list(layout.sampling.settings.values()), layout.buttons
    model_widgets = [layout.facts, layout.vocabulary, layout.picker, layout.sampling.top_k]

    tabs = [layout.steps, layout.tabs]
    load_outputs = [layout.update, *model_widgets, layout.prompt, *tabs, *settings]
    load_event = blocks.load(
        _ignore_none(run_handlers.on_load), layout.state, load_outputs, js=page_script("await page.atFirst()"), **quiet
    )
    load_event.then(None, layout.prompt, layout.prompt, js=page_script("page.promptAtFirst(text)", "text"))
    generation_options = {"js": page_script("page.beginWriting()")} | quiet
    generation_options["concurrency_limit"] = MAX_CONCURRENT_GENERATIONS
    generation_by_button = {
        buttons.step: buttons.step.click(
            generation_handlers.on_step, layout.state, layout.update, **generation_options
        ),
        buttons.generate: buttons.generate.click(
            generation_handlers.on_generate, layout.state, layout.generation_update, **generation_options
        ),
        buttons.regenerate: buttons.regenerate.click(
            generation_handlers.on_regenerate,
            layout.state,
            [layout.generation_update, layout.sampling.seed],
            **generation_options,
        ),
        buttons.compare: buttons.compare.click(
            generation_handlers.on_compare, layout.state, layout.generation_update, **generation_options
        ),
    }
    for button in generation_by_button:  # one thing is written at a time
        button.click(None, cancels=[event for other, event in generation_by_button.items() if other is not button])
    layout.guess.step(None, cancels=list(generation_by_button.values()))
    generation_listeners = [
        *generation_by_button.values(),
        layout.guess.step(generation_handlers.on_step, layout.state, layout.update, **generation_options),
    ]
    for event in generation_listeners:
        event.then(None, None, None, js=page_script("page.wrote()"))
    prompt_triggers = [layout.prompt.submit, layout.run.click]
    cancel_triggers = [
        buttons.stop.click,
        buttons.undo.click,
        *prompt_triggers,
        layout.picker.input,
        layout.open_model.input,
        *(button.click for button, _ in layout.examples),
    ]
    gr.on(
        cancel_triggers, None, cancels=generation_listeners
    )  # before the handlers: Gradio runs a trigger's listeners in order
    for trigger in (layout.state.move, layout.state.halt, layout.advice.apply):
        trigger(None, cancels=generation_listeners)
    move_event = layout.state.move(
        _ignore_none(generation_handlers.on_move), layout.state, [layout.update, layout.prompt], **quiet
    )
    move_event.then(None, layout.update, None, js=page_script("page.onMoved(update)", "update"))
    prompt_options = {
        "inputs": [layout.prompt, layout.picker, layout.state],
        "outputs": [layout.update, *model_widgets],
    } | quiet
    prompt_options |= {"js": page_script("[prompt, checkpoint, await page.begin()]", "prompt, checkpoint")}
    on_prompt, on_model = _ignore_none(run_handlers.on_prompt), _ignore_none(run_handlers.on_model)
    gr.on(prompt_triggers, on_prompt, **prompt_options)
    with_own_script = page_script("[prompt, checkpoint, await page.beginWith(checkpoint)]", "prompt, checkpoint")
    layout.picker.input(on_model, **prompt_options | {"js": with_own_script})
    open_model_options = {"inputs": [layout.prompt, layout.open_model, layout.state], "js": with_own_script}
    layout.open_model.input(on_model, **prompt_options | open_model_options)
    for button, text in layout.examples:
        button.click(lambda text=text: text, None, layout.prompt, **quiet).then(
            _ignore_none(run_handlers.on_example), **prompt_options
        )
    layout.advice.apply(_identity, layout.advice, layout.prompt, **quiet).then(on_prompt, **prompt_options)

    setting_events = [setting.input for setting in settings]
    setting_events += [
        setting.release for setting in settings if isinstance(setting, gr.Slider)
    ]  # its reset makes no input
    setting_events.append(layout.sampling.stop_strings.blur)  # text pasted into the fresh box makes no input either
    gr.on(setting_events, None, settings, None, js=_settings_to_state_script(layout.sampling.settings))
    layout.sampling.presets.choose(None, None, settings, js=_state_to_settings_script(layout.sampling.settings))
    latest_options = {"trigger_mode": "always_last"} | quiet  # Back and Forward may come faster than answers
    layout.state.open(None, None, tabs, js=page_script("page.openedTabs()"))
    layout.state.follow(
        _ignore_none(run_handlers.on_follow), layout.state, [*model_widgets, layout.prompt, *settings], **latest_options
    )
    for name, tab in layout.tab.items():
        tab.select(None, None, None, js=page_script(f"page.openedTab({name!r})"))

    layout.share.click(None, None, None, js=page_script("page.copyLink()"))
    layout.open_file.click(None, None, None, js=page_script("page.openFile()"))
    layout.theme.click(None, None, None, js=page_script("page.toggleTheme()"))


def _settings_to_state_script(names: Iterable[str]) -> str:
    """Return a script that writes the settings, passed in the order of their names, to the state."""
    listed = ", ".join(names)
    return page_script(f"page.tune({{ {listed} }})", listed)


def _state_to_settings_script(names: Iterable[str]) -> str:
    """Return a script that reads the settings from the state, in the order of their names."""
    return page_script(f"{list(names)}.map((name) => page.state[name])")


def _identity(offer: str) -> str:
    return offer


def _ignore_none(handler: Callable) -> Callable:
    """Decorate a handler to change nothing if it returns None or {}, which Gradio would read as too few values."""

    @wraps(handler)
    def wrapper(*args):
        return handler(*args) or gr.skip()

    return wrapper
