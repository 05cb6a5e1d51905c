"""The Gradio app: its layout, events, languages, theme and API functions."""

import gc
import os
import sys
from collections.abc import Callable, Collection
from contextvars import Context
from functools import cache, wraps
from pathlib import Path
from threading import Lock
from typing import Any

import gradio as gr
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from explorer.lessons.lesson import LessonLibrary
from explorer.state.generation_settings import NO_LIMITS, UserLimits
from explorer.tracing.jobs import unlimited_budget
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.translations import ENGLISH, negotiate_locale, use_locale
from explorer.views.style import DARK, LIGHT, MONO_FONTS, SANS_FONTS, css_colours
from explorer.web.actions.generation_actions import GenerationActions
from explorer.web.actions.page_actions import LessonStepStates, PageActions
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.assets import FONT_WEIGHTS, LAYOUT_SHEETS, event_script, head_tags, static_folder, static_path
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.browser_api.lesson_endpoints import ELEMENT_IDS, LessonContents
from explorer.web.browser_routes import BrowserRoutes
from explorer.web.file_uploads import FileUploads
from explorer.web.key_value_stores import FaultTolerantStore, MemoryRooms, RedisStore
from explorer.web.layout import TITLE, PageLayout, StateComponent
from explorer.web.middleware import AllowedHosts, SecurityMiddleware
from explorer.web.public_api import PublicApi, health
from explorer.web.rate_limits import Client, PromptRateLimiter, limit_logging, use_client
from explorer.web.request_validation import RequestBodyValidator, State, argument_types
from explorer.web.room_routes import RoomRoutes
from explorer.web.user_messages import user_message

TEXT_PROPS = ("value", "label", "info", "placeholder")
_build_lock = Lock()  # Gradio knows one open `gr.Blocks` in the whole process


def localized_components(blocks: gr.Blocks) -> list[gr.blocks.Block]:
    """Return the components that have texts."""
    with_texts = (
        block for block in blocks.blocks.values() if isinstance(block, gr.components.Component | gr.Accordion)
    )
    return [block for block in with_texts if not isinstance(block, StateComponent)]


class ComponentTextsByLanguage:
    """The components' texts in each language, rendered on first use.

    Args:
        build: builds the page's components in the open `gr.Blocks`.
    """

    def __init__(self, build: Callable[[], Any]):
        self._build = build
        # In a context of its own: in that of an event Gradio takes new components for updates.
        self._props = cache(lambda language: Context().run(self._render, language))

    def _render(self, language: str) -> list[dict[str, Any]]:
        with _build_lock, use_locale(language), gr.Blocks(analytics_enabled=False) as blocks:
            self._build()
        props = {component["id"]: component["props"] for component in blocks.config["components"]}
        return [props[block._id] for block in localized_components(blocks)]

    def updates(self, state: State) -> list[dict[str, Any]]:
        """Return the updates of all components, in order, to the language of the page's state."""
        language = negotiate_locale(state.get("lang"))
        return [
            gr.update(**{name: props[name] for name in TEXT_PROPS if props.get(name) != english.get(name)})
            for english, props in zip(self._props(ENGLISH), self._props(language), strict=True)
        ]


MAX_CONCURRENT_GENERATIONS = 2  # more take Python's lock from one another, and clicks take longer


def wire_events(
    blocks: gr.Blocks, layout: PageLayout, generation: GenerationActions, localization: ComponentTextsByLanguage
):
    """Connect Gradio's events to generation and to the page's script."""
    settings = list(layout.settings.values())
    private = {"show_progress": "hidden", "api_visibility": "private"}
    localized = layout.state.localize(localization.updates, layout.state, localized_components(blocks), **private)
    localized.then(None, None, None, js=event_script("page.build()"))
    blocks.load(None, None, None, js=event_script("page.start()"))
    wire_generation(layout, generation, private)

    for trigger in (layout.prompt.submit, layout.run.click):
        trigger(None, layout.prompt, None, js=event_script("void page.runPrompt(prompt)", "prompt"))
    for name, setting in layout.settings.items():
        setting.input(None, setting, None, js=event_script(f"page.changeSettings({{ {name} }})", name))
        if isinstance(setting, gr.Slider):  # its reset makes no input
            setting.release(None, setting, None, js=event_script(f"page.changeSettings({{ {name} }}, true)", name))
        if setting is layout.stop_strings:  # text pasted into the fresh box makes no input either
            setting.blur(None, setting, None, js=event_script(f"page.changeSettings({{ {name} }})", name))
    all_script = event_script("page.changeSettings({ top_k: all ? 0 : top_k })", "all, top_k")
    layout.all_tokens.input(None, [layout.all_tokens, layout.top_k], None, js=all_script)
    controls = [*settings, layout.all_tokens]
    follow_state = event_script(f"page.controlValues({list(layout.settings)})")
    layout.state.sync(None, None, [layout.prompt, *controls], js=follow_state)


def wire_generation(layout: PageLayout, generation: GenerationActions, private: dict[str, str]):
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
        event.then(None, None, None, js=event_script("page.endGeneration()"))
    for trigger in (layout.stop.click, layout.undo.click, layout.state.halt):
        trigger(None, cancels=list(events.values()))
    layout.state.wake(lambda: None, None, None, show_progress="hidden", api_visibility="private")


MAX_THREADS = 3  # of Gradio's events: more take Python's lock from one another, and texts come many times slower
# Seconds after which a thread hands over Python's lock (5 ms by default). Writing 40 tokens takes the lock anew 500
# times, after each product: beside one thread that computes in Python that took 1.8 to 5.5 s, and takes 0.5 s so.
SWITCH_INTERVAL_S = 0.0005
MAX_SESSIONS = 100  # Gradio sessions, about 0.3 MB each; an evicted one is recreated unnoticed
# Room for the buttons that stay at the bottom of a narrow screen (page.css). In a style sheet of its own Gradio would
# look for the root, where a media query speaks of it, inside the page.
BAR_CSS = """
:root { --bar: 0px; }
@media (max-width: 900px) { :root { --bar: 84px; } }
@media (max-width: 600px), (max-width: 900px) and (pointer: coarse) { :root { --bar: 101px; } } /* room for fingers */
body.simple.guessing { --bar: 0px; } /* which has none */
"""
# While Gradio puts the page together everything jumps: it is seen once it stands (page.js).
UNBUILT_CSS = "body:not(.built) .contain { visibility: hidden; }"


class Page:
    """The Gradio app for a library of models.

    Args:
        library: the models.
        checkpoint: name of the model that a new user sees.
        limits: of one user.
        lessons: folder with a teacher's own lessons; None for none.
        shared: address of the store shared with other processes (see `RedisStore`); "" for none.

    Raises:
        LessonError: a file there is no valid lesson.
        StoreError: there can be no store at this address.
    """

    def __init__(
        self,
        library: ModelLibrary,
        checkpoint: str,
        limits: UserLimits = NO_LIMITS,
        lessons: Path | None = None,
        shared: str = "",
    ):
        self.library, self.checkpoint, self.limits = library, checkpoint, limits
        store = RedisStore(shared) if shared else None
        self.answer_store = FaultTolerantStore(store) if store else None
        self.lesson_library = LessonLibrary(lessons, ELEMENT_IDS)
        self.uploads = FileUploads() if library.catalog.allows_paths else None
        self.rooms = RoomRoutes(store or MemoryRooms(), self.lesson_library, limits)
        if lessons:  # what is wrong with them is told before anybody is served
            self.lesson_library.check()

    def build(self) -> gr.Blocks:
        """Build the page's components, endpoints and events."""
        state_builder = PageStateBuilder(RunService(self.library))
        lessons = LessonContents(self.lesson_library, state_builder.runs, state_builder.state_from_query)
        prompts = PromptRateLimiter(self.limits.prompts)
        self.generation = GenerationActions(state_builder, self.limits)
        self.actions = PageActions(state_builder, self.generation, self.checkpoint, LessonStepStates(lessons), prompts)
        self.channel = BrowserRoutes(BrowserEndpoints(state_builder.runs, lessons, self.answer_store), self.actions)
        with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as blocks:
            self.layout = PageLayout(self.library.catalog)
            localization = ComponentTextsByLanguage(lambda: PageLayout(self.library.catalog))
            wire_events(blocks, self.layout, self.generation, localization)
            api = PublicApi(state_builder, self.checkpoint, self.limits)
            for name, function in {"explore": api.explore, "generate": api.generate}.items():
                gr.api(decorate_api_function(function, prompts), api_name=name)
        return blocks.queue(default_concurrency_limit=MAX_CONCURRENT_GENERATIONS)

    def launch(self, allowed_hosts: Collection[str] = (), **options) -> gr.Blocks:
        """Build and serve the page.

        Args:
            allowed_hosts: additional host names of the server (see `AllowedHosts`).
            options: of `gr.Blocks.launch`.
        """
        blocks = self.build()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        gc.collect()
        gc.freeze()  # objects loaded by now are permanent: without this, each collection takes 70 ms
        bound_host = options.get("server_name") or os.environ.get("GRADIO_SERVER_NAME")
        server_options = self.server_options(blocks, AllowedHosts.for_this_machine(bound_host, allowed_hosts))
        blocks.launch(state_session_capacity=MAX_SESSIONS, max_threads=MAX_THREADS, **server_options, **options)
        return blocks

    def warm_up(self):
        """Do what a first user's request needs, so that files are read and caches filled; takes a second or two.

        Call this once the page is served, as nothing that is served waits for it.
        """
        self.actions.parse_query({})

    def mount(self, app: FastAPI, path: str, hosts: Collection[str] = ("*",)) -> FastAPI:
        """Build the page and mount it below a path of another app, which is responsible for checking host names."""
        blocks = self.build()
        blocks.state_session_capacity = MAX_SESSIONS
        return gr.mount_gradio_app(app, blocks, path=path, **self.server_options(blocks, AllowedHosts(hosts)))

    def server_options(self, blocks: gr.Blocks, hosts: AllowedHosts) -> dict[str, Any]:
        """Return Gradio's options for serving the page."""
        limit_logging()
        upload_routes = self.uploads.routes if self.uploads else []
        admission = {
            "hosts": hosts,
            "most_bytes": self.limits.request_bytes,
            "checks": RequestBodyValidator(blocks),
            "unbounded_paths": [route.path for route in upload_routes],
        }
        routes = [static_route(), self.health_route(blocks), *self.rooms.routes, *upload_routes, *self.channel.routes]
        return {
            "css": "\n".join(path.read_text(encoding="utf-8") for path in LAYOUT_SHEETS),
            "head": f"<style>{css_colours()}{BAR_CSS}{UNBUILT_CSS}</style>{head_tags()}",
            "theme": page_theme(),
            "footer_links": ["api"],
            "ssr_mode": False,
            "run_history": False,  # would keep every event's data in the browser
            "enable_monitoring": False,
            "app_kwargs": {"middleware": [Middleware(SecurityMiddleware, **admission)], "routes": routes},
        }

    def health_route(self, blocks: gr.Blocks) -> Route:
        """Return the route of the server's report on itself."""

        async def report_health(request: Request) -> Response:
            return JSONResponse(health(self.library, blocks, self.channel.num_waiting, self.answer_store))

        return Route("/health", report_health)


def static_route() -> Route:
    """Return the route of the scripts, which `Mount` would not find below a path that a proxy takes off."""
    files = StaticFiles(directory=static_folder())

    async def serve_file(request: Request) -> Response:
        return await files.get_response(request.path_params["path"], request.scope)

    return Route(f"/{static_path()}/{{path:path}}", serve_file)


THEME_FIELDS = {  # Gradio's name of a colour -> the field of `Theme`
    "body_background_fill": "background",
    "body_text_color": "text",
    "body_text_color_subdued": "subdued",
    "block_info_text_color": "subdued",
    "input_placeholder_color": "subdued",
    "background_fill_primary": "background",
    "background_fill_secondary": "surface",
    "button_secondary_text_color": "text",
    "button_primary_background_fill": "accent",
    "button_primary_background_fill_hover": "accent",
    "button_primary_border_color": "accent",
    "button_primary_text_color": "background",
    "slider_color": "accent",
}


def page_theme() -> gr.themes.Base:
    """Return Gradio's plainest theme in the colours of the figures, with two fonts that Gradio has and serves."""
    sans, mono = (
        (gr.themes.LocalFont(name, weights=FONT_WEIGHTS), *others) for name, *others in (SANS_FONTS, MONO_FONTS)
    )
    theme = gr.themes.Base(neutral_hue="slate", spacing_size="sm", font=sans, font_mono=mono)
    light = {name: getattr(LIGHT, field) for name, field in THEME_FIELDS.items()}
    dark = {f"{name}_dark": getattr(DARK, field) for name, field in THEME_FIELDS.items()}
    one_look = {  # as the page's own buttons
        f"button_secondary_{part}{dark}": value
        for dark in ("", "_dark")
        for part, value in (
            ("background_fill", "transparent"),
            ("background_fill_hover", "*background_fill_secondary"),
            ("border_color", "*border_color_primary"),
        )
    }
    one_look |= {
        "block_background_fill_dark": "*background_fill_primary",
        "input_background_fill_dark": "*background_fill_secondary",
    }
    one_look |= dict.fromkeys(("button_large_text_weight", "button_small_text_weight"), "400")
    return theme.set(**light, **dark, **one_look, button_border_width="1px", color_accent="var(--accent)")


def decorate_api_function(function: Callable, prompts: PromptRateLimiter) -> Callable:
    """Decorate an API function to check its arguments, count its prompts, and raise errors that a client can read."""

    @wraps(function)
    def wrapper(*args, **kwargs):
        request = args[-1]
        address = getattr(getattr(request, "client", None), "host", None) or ""
        with use_client(Client(getattr(request, "session_hash", None) or "", address)):
            try:
                types = argument_types(function)
                types.check(list(args[: len(types.names)]))
                prompts.acquire()
                with unlimited_budget().activate():
                    return function(*args, **kwargs)
            except Exception as error:
                raise gr.Error(user_message(error), print_exception=False) from None

    return wrapper
