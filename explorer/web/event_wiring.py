"""Gradio's events: generation, which streams through its queue; everything else is the page's script."""

from collections.abc import Iterable

import gradio as gr

from explorer.web.actions.generation import Generation
from explorer.web.assets import event_script
from explorer.web.layout import PageLayout
from explorer.web.localize import Localization, localized_components

MAX_CONCURRENT_GENERATIONS = 2  # more take Python's lock from one another, and clicks take longer


def wire_events(blocks: gr.Blocks, layout: PageLayout, generation: Generation, localization: Localization):
    """Connect Gradio's events to generation and to the page's script."""
    settings = list(layout.settings.values())
    private = {"show_progress": "hidden", "api_visibility": "private"}
    localized = layout.state.localize(localization.updates, layout.state, localized_components(blocks), **private)
    localized.then(None, None, None, js=event_script("page.build()"))
    blocks.load(None, None, None, js=event_script("page.start()"))
    wire_generation(layout, generation, private)

    for trigger in (layout.prompt.submit, layout.run.click):
        trigger(None, layout.prompt, None, js=event_script("page.runPrompt(prompt)", "prompt"))
    setting_events = [setting.input for setting in settings]
    setting_events += [
        setting.release for setting in settings if isinstance(setting, gr.Slider)
    ]  # its reset makes no input
    setting_events.append(layout.stop_strings.blur)  # text pasted into the fresh box makes no input either
    setting_events.append(layout.all_tokens.input)
    controls = [*settings, layout.all_tokens]
    gr.on(setting_events, None, controls, None, js=_settings_to_state_script(layout.settings))
    follow_state = event_script(f"page.controls({list(layout.settings)})")
    layout.state.sync(None, None, [layout.prompt, *controls], js=follow_state)


def wire_generation(layout: PageLayout, generation: Generation, private: dict[str, str]):
    """Connect the buttons that write text, of which one works at a time, and what stops them."""
    concurrency = {"concurrency_id": "generation", "concurrency_limit": MAX_CONCURRENT_GENERATIONS}
    options = {"js": event_script("page.beginWriting()")} | concurrency | private
    triggers = {
        layout.generate.click: generation.generate,
        layout.regenerate.click: generation.regenerate,
        layout.compare.click: generation.compare,
    }
    events = {  # with names of their own: programs know another function as /generate
        trigger: trigger(function, layout.state, layout.update, api_name=f"page_{function.__name__}", **options)
        for trigger, function in triggers.items()
    }
    for trigger in events:
        trigger(None, cancels=[event for other, event in events.items() if other is not trigger])
    for event in events.values():
        event.then(None, None, None, js=event_script("page.wrote()"))
    for trigger in (layout.stop.click, layout.undo.click, layout.state.halt):
        trigger(None, cancels=list(events.values()))
    layout.state.wake(lambda: None, None, None, show_progress="hidden", api_visibility="private")


def _settings_to_state_script(names: Iterable[str]) -> str:
    """Return a script that writes the settings, passed in the order of their names, to the state.

    The last argument is whether all tokens are kept.
    """
    listed = ", ".join(names)
    return event_script(f"page.tune({{ {listed}, ...(all && {{ top_k: 0 }}) }})", f"{listed}, all")
