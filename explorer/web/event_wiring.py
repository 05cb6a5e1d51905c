"""Gradio's events: generation, which streams through its queue; everything else is the page's script."""

import json
from collections.abc import Iterable

import gradio as gr

from explorer.web.actions.generation import Generation
from explorer.web.assets import event_script
from explorer.web.layout.page_layout import PageLayout

MAX_CONCURRENT_GENERATIONS = 2  # more take Python's lock from one another, and clicks take longer


def wire_events(blocks: gr.Blocks, layout: PageLayout, generation: Generation):
    """Connect Gradio's events to generation and to the page's script."""
    settings, tabs = list(layout.sampling.settings.values()), [layout.steps, layout.tabs]
    blocks.load(None, None, None, js=event_script("page.start()"))
    wire_generation(layout, generation)

    run_prompt = event_script("page.runPrompt(prompt)", "prompt")
    for trigger in (layout.prompt.submit, layout.run.click):
        trigger(None, layout.prompt, None, js=run_prompt)
    layout.advice.apply(None, layout.advice, layout.prompt, js=run_prompt)
    for widget in (layout.picker, layout.open_model):
        script = event_script("page.changeModel(prompt, checkpoint)", "prompt, checkpoint")
        widget.input(None, [layout.prompt, widget], None, js=script)
    for button, text in layout.examples:
        button.click(None, None, layout.prompt, js=event_script(f"page.runExample({json.dumps(text)})"))

    setting_events = [setting.input for setting in settings]
    setting_events += [
        setting.release for setting in settings if isinstance(setting, gr.Slider)
    ]  # its reset makes no input
    setting_events.append(layout.sampling.stop_strings.blur)  # text pasted into the fresh box makes no input either
    gr.on(setting_events, None, settings, None, js=_settings_to_state_script(layout.sampling.settings))
    controls = [layout.prompt, *settings]
    follow_state = event_script(f"page.controls({list(layout.sampling.settings)})")
    for trigger in (layout.state.sync, layout.sampling.presets.choose):
        trigger(None, None, controls, js=follow_state)
    layout.state.open(None, None, tabs, js=event_script("page.openedTabs()"))
    for name, tab in layout.tab.items():
        tab.select(None, None, None, js=event_script(f"page.openedTab({name!r})"))

    layout.share.click(None, None, None, js=event_script("page.copyLink()"))
    layout.open_file.click(None, None, None, js=event_script("page.openFile()"))
    layout.theme.click(None, None, None, js=event_script("page.toggleTheme()"))


def wire_generation(layout: PageLayout, generation: Generation):
    """Connect the buttons that write text, of which one works at a time, and what stops them."""
    buttons, options = (
        layout.buttons,
        {
            "js": event_script("page.beginWriting()"),
            "show_progress": "hidden",
            "api_visibility": "private",
            "concurrency_id": "generation",
            "concurrency_limit": MAX_CONCURRENT_GENERATIONS,
        },
    )
    triggers = {
        buttons.generate.click: generation.generate,
        buttons.regenerate.click: generation.regenerate,
        buttons.compare.click: generation.compare,
    }
    events = {  # with names of their own: programs know another function as /generate
        trigger: trigger(function, layout.state, layout.update, api_name=f"page_{function.__name__}", **options)
        for trigger, function in triggers.items()
    }
    for trigger in events:
        trigger(None, cancels=[event for other, event in events.items() if other is not trigger])
    for event in events.values():
        event.then(None, None, None, js=event_script("page.wrote()"))
    for trigger in (buttons.stop.click, buttons.undo.click, layout.state.halt):
        trigger(None, cancels=list(events.values()))
    layout.state.wake(lambda: None, None, None, show_progress="hidden", api_visibility="private")


def _settings_to_state_script(names: Iterable[str]) -> str:
    """Return a script that writes the settings, passed in the order of their names, to the state."""
    listed = ", ".join(names)
    return event_script(f"page.tune({{ {listed} }})", listed)
