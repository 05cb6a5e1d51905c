"""The page as an app: its widgets, its events, its looks, and the functions it offers to programs."""

import gc
import os
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import Any

import gradio as gr
from fastapi import FastAPI
from starlette.middleware import Middleware

from explorer.lessons.course.shelf import Shelf
from explorer.state.limits import NO_LIMITS, VisitorLimits
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.tracing.work import unbounded
from explorer.views.style import DARK, LIGHT, MONO_FONTS, SANS_FONTS, css_colours
from explorer.web.answers.endpoints import Endpoints
from explorer.web.answers.lesson_answers import PICTURES, LessonAnswers
from explorer.web.api import Api
from explorer.web.assets import page_scripts
from explorer.web.connecting import MOST_AT_ONCE, connect
from explorer.web.errors import told
from explorer.web.events.generation_events import GenerationEvents
from explorer.web.events.lesson_events import LessonEvents
from explorer.web.events.opening import Opening
from explorer.web.events.run_events import Events
from explorer.web.http.gate import Gate
from explorer.web.http.health import health
from explorer.web.http.hosts import Hosts
from explorer.web.http.prompts_a_minute import PromptsAMinute
from explorer.web.http.request_checks import RequestChecks
from explorer.web.http.turns import in_turn
from explorer.web.layout.page_layout import TITLE, Layout
from explorer.web.log_lines import bound_log
from explorer.web.rooms.kept_rooms import MOST_BYTES
from explorer.web.rooms.routes import RoomRoutes
from explorer.web.shared.going_without import GoingWithout
from explorer.web.shared.opened import store_at
from explorer.web.spoken_blocks import SpokenBlocks

MOST_SESSIONS = 100  # that Gradio keeps something of, about 0.3 MB each; one that it forgot begins anew, unnoticed
# Room for the buttons that stay at the bottom of a narrow screen (page.css). In a style sheet of its own Gradio would
# look for the root, where a media query speaks of it, inside the page.
BAR = """
:root { --bar: 0px; }
@media (max-width: 900px) { :root { --bar: 84px; } }
@media (max-width: 600px), (max-width: 900px) and (pointer: coarse) { :root { --bar: 101px; } } /* room for fingers */
body.simple { --bar: 0px; } /* which has none */
"""
# While Gradio puts the page together everything jumps: it is seen once it stands (page.js).
UNBUILT = "body:not(.built) .contain { visibility: hidden; }"


class Page:
    """The Gradio app on a library's models.

    Args:
        library: the models.
        checkpoint: name of the one a new visitor sees.
        limits: of what a visitor may have written at a time.
        lessons: folder with a teacher's own lessons; None for none.
        shared: address of what other processes know, too (see `store_at`); "" for nothing.

    Raises:
        LessonError: a file there is no lesson.
        StoreError: nothing can be shared there.
    """

    def __init__(
        self,
        library: Library,
        checkpoint: str,
        limits: VisitorLimits = NO_LIMITS,
        lessons: Path | None = None,
        shared: str = "",
    ):
        self.library, self.checkpoint, self.limits = library, checkpoint, limits
        self.answers = GoingWithout(store_at(shared, "answers")) if shared else None
        self.shelf = Shelf(lessons, PICTURES)
        self.rooms = RoomRoutes(store_at(shared, "rooms", MOST_BYTES), self.shelf, limits)
        if lessons:  # what is wrong with them is told before anybody is served
            self.shelf.check()

    def build(self) -> gr.Blocks:
        opening = Opening(Runs(self.library))
        lessons = LessonAnswers(self.shelf, opening.runs, opening.restored)
        placed = self.library.offered, self.checkpoint, Endpoints(opening.runs, lessons, self.answers).functions
        with SpokenBlocks(title=TITLE, analytics_enabled=False, fill_width=True) as blocks:
            self.layout = Layout(*placed)
            steps, prompts = LessonEvents(lessons), PromptsAMinute(self.limits.prompts)
            self.events = Events(self.layout, opening, self.checkpoint, steps, prompts)
            outputs = self.layout.update, self.layout.written, self.layout.prompt, self.layout.sampling.seed
            self.writing = GenerationEvents(*outputs, opening, self.limits, steps)
            connect(blocks, self.layout, self.events, self.writing)
            api = Api(opening, self.checkpoint, self.limits)
            for name, function in {"explore": api.explore, "generate": api.generate}.items():
                gr.api(told_to_programs(function, prompts), api_name=name, concurrency_limit=MOST_AT_ONCE)
        blocks.translate(lambda: Layout(*placed))
        return blocks.queue(default_concurrency_limit=None)  # they wait for their turns (http/turns.py)

    def launch(self, allowed_hosts: Collection[str] = (), **options) -> gr.Blocks:
        """Build and serve.

        Args:
            allowed_hosts: names besides the machine's own by which the server may be asked for (see `Hosts`).
            options: of `gr.Blocks.launch`.
        """
        blocks = self.build()
        gc.collect()
        gc.freeze()  # what is loaded by now stays: without it the collector walks it all again, 70 ms at a time
        bound = options.get("server_name") or os.environ.get("GRADIO_SERVER_NAME")
        served = self.served_with(blocks, Hosts.of_this_machine(bound, allowed_hosts))
        blocks.launch(state_session_capacity=MOST_SESSIONS, **served, **options)
        return blocks

    def warm_up(self):
        """Ask what a first visitor will: some of what that takes is read and built once, which takes a second or two.

        To be called once the page is served, as nothing that is served waits for it.
        """
        self.events.opened({})

    def mount(self, app: FastAPI, path: str, hosts: Collection[str] = ("*",)) -> FastAPI:
        """Build and serve below a path of another app, which is left to choose by which names it is asked for."""
        blocks = self.build()
        blocks.state_session_capacity = MOST_SESSIONS
        return gr.mount_gradio_app(app, blocks, path=path, **self.served_with(blocks, Hosts(hosts)))

    def served_with(self, blocks: gr.Blocks, hosts: Hosts) -> dict[str, Any]:
        """How Gradio serves the page, whoever asks for it."""
        admitted = {"hosts": hosts, "most_bytes": self.limits.request_bytes}
        told = {"health": lambda: health(self.library, blocks, self.answers), "rooms": self.rooms}
        told["checks"] = RequestChecks(blocks)
        bound_log()
        gate = Middleware(Gate, **admitted, **told)
        return {
            "css": Path(__file__).with_suffix(".css").read_text(encoding="utf-8"),
            "head": f"<style>{css_colours()}{BAR}{UNBUILT}</style>{page_scripts()}",
            "theme": page_theme(),
            "footer_links": ["api"],
            "ssr_mode": False,
            "run_history": False,  # would keep every event's data in the browser
            "enable_monitoring": False,
            "app_kwargs": {"middleware": [gate]},
        }


THEMED = {  # Gradio's name of a colour -> the field of `Theme`
    "body_background_fill": "background",
    "body_text_color": "text",
    "body_text_color_subdued": "subdued",
    "block_info_text_color": "subdued",
    "input_placeholder_color": "subdued",
    "background_fill_primary": "background",
    "background_fill_secondary": "surface",
    "button_secondary_background_fill": "raised",
    "button_secondary_text_color": "text",
    "button_primary_background_fill": "accent",
    "button_primary_background_fill_hover": "accent",
    "button_primary_border_color": "accent",
    "button_primary_text_color": "background",
    "slider_color": "accent",
}


def page_theme() -> gr.themes.Base:
    """Gradio's plainest theme in the colours of the figures; no font is fetched."""
    theme = gr.themes.Base(neutral_hue="slate", spacing_size="sm", font=SANS_FONTS, font_mono=MONO_FONTS)
    light = {name: getattr(LIGHT, field) for name, field in THEMED.items()}
    dark = {f"{name}_dark": getattr(DARK, field) for name, field in THEMED.items()}
    return theme.set(**light, **dark, color_accent="var(--accent)")  # which has no dark variant of its own


def told_to_programs(function: Callable, prompts: PromptsAMinute | None = None) -> Callable:
    """The function of a prompt with what it raises turned into errors that a client gets to read."""

    @wraps(function)
    def wrapped(*args, **kwargs):
        try:
            if prompts:
                prompts.ask_of_this_event()
            with in_turn(unbounded()):
                return function(*args, **kwargs)
        except Exception as error:
            raise gr.Error(told(error), print_exception=False) from None

    return wrapped
