"""Fuzz test: every field of every endpoint with wrong values is answered or refused in a sentence; nothing is logged.

Endpoints, functions and fields are found in the running app, so new ones are tested automatically.
"""

import html
import itertools
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi.routing import APIRoute

from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web import room_routes
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_routes import PageRequest
from explorer.web.page import Page
from explorer.web.request_validation import ArgumentTypes, argument_types

# Valid and invalid JSON.
NUMBERS = ["0", "1", "-1", "-0", "-0.0", "1.0", "3.0", "0.5", "1e308", "9" * 30, "9" * 401, "-" + "9" * 401, "9" * 5000]
NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "0x10", "01", "1_0"]
CONSTANTS = ["null", "true", "false", "undefined"]
TEXTS = ["", " ", "0", "1.0", "-1", "true", "nan", "null", "x", "é" * 300, "a" * 30_000, "../../etc/passwd", "a\x00b"]
TEXTS += ["<img src=x onerror=alert(1)>", "${7*7}{{7*7}}", "{name!r:.99999999}"]
ODD_TEXTS = [r'"\ud800"', r'"a\udfffb"', r'"\ud83d\ude00"', '"\x01"', '"\\x"', "'x'"]
LISTS = ["[]", "[0]", "[[]]", "[null]", "[" * 10_000 + "]" * 10_000, "[" * 500 + "]" * 500, "[0,]", str([0] * 5000)]
OBJECTS = ["{}", '{"a":1}', '{"a":1,"a":2}', '{"a":' * 300 + "1" + "}" * 300, '{"__proto__":{}}', "{"]
OBJECTS += ['{"path":"/etc/passwd","meta":{"_type":"gradio.FileData"}}', '{"__type__":"update","value":1}']
VALUES = [*NUMBERS, *NO_NUMBERS, *CONSTANTS, *map(json.dumps, TEXTS), *ODD_TEXTS, *LISTS, *OBJECTS]
PLACEHOLDER = "\x07here\x07"  # replaced by a value in a request body
JSON = {"Content-Type": "application/json"}
BROKEN = "Internal error (not your fault)"
STUDENT, MAX_SENTENCE = "0" * 32, 2100
EXAMPLES = {  # argument name -> example; other arguments get one by type
    "figure": "attention-pattern",
    "term": "token",
    "checkpoint": "rope",
    "prompt": "the fox",
    "max_new_tokens": 1,
    "top_p": 0.9,
    "repetition_penalty": 1.5,
}
ACTION = {
    "count": 2,
    "token": 3,
    "path": [3, 4],
    "with": "unchanged",
    "a": 1,
    "b": 1,
    "words": {"text": "the fox"},
    "pair": 1,
}
ACTION |= {"checkpoint": "rope", "text": "the fox", "lesson": "tokens-and-merges", "step": 4, "reply": "4:x"}
ACTION |= {"query": {"text": "the fox", "layer": "1"}, "own": {"generated": [3], "branches": ""}}
ACTION |= {"messages": [{"role": "user", "content": "hi"}]}


@dataclass
class App:
    """Running app, and the results of the requests that were sent."""

    page: Page
    blocks: Any
    client: httpx.Client
    state: dict[str, Any]
    counts: Counter = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def try_body(self, kind: str, path: str, body: str | bytes, **options: Any) -> httpx.Response:
        """Send a body, count the status, and record refusals that are not a sentence."""
        body = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
        answer = self.client.post(path, content=body, **{"headers": JSON} | options)
        self.record_answer(kind, path, body, answer)
        return answer

    def record_answer(self, kind: str, path: str, body: bytes, answer: httpx.Response):
        self.counts[kind, answer.status_code] += 1
        summary = f"{path} {body[:300]!r}: {answer.status_code}"
        if answer.status_code >= 500 or BROKEN in answer.text:
            self.wrong.append(f"{summary} {answer.text[:300]}")
        elif answer.status_code >= 400 and not is_sentence(answer):
            self.wrong.append(f"{summary} is no sentence: {answer.text[:300]}")


def is_sentence(answer: httpx.Response) -> bool:
    text = answer.text
    if answer.headers["content-type"].startswith("application/json"):
        text = answer.json()["detail"]
    return isinstance(text, str) and " " in text and len(text) < MAX_SENTENCE and "Traceback" not in text


@pytest.fixture(scope="module")
def app(built_page, style_checkpoints) -> Iterator[App]:
    page = Page(ModelLibrary("cpu"), "rope")
    blocks = page.launch(prevent_thread_lock=True, quiet=True)
    run = PageStateBuilder(RunService(page.library)).create_run("rope", "the fox asked")
    settings = GenerationSettings(max_new_tokens=1, temperature=0.9, top_p=0.9, min_p=0.1, repetition_penalty=1.1)
    state = PageState(run, Selection(query=2, key=1, view="attention")).as_dict() | settings.as_dict()
    state |= {
        "name of another version": 1,
        "lang": "en",
        "turn": 1,
        "version": "",
    }
    with pytest.MonkeyPatch.context() as patch, httpx.Client(base_url=blocks.local_url, timeout=60) as client:
        patch.setattr(room_routes, "MAX_MISSES_PER_MINUTE", 1e9)
        patch.setattr("explorer.web.room_routes.LONG_POLL_S", 0.01)
        yield App(page, blocks, client, state)
    blocks.close(verbose=False)


@pytest.fixture(autouse=True)
def check_no_errors(app, caplog, capfd):
    """Check that nothing was logged, no traceback was printed and no answer was wrong."""
    app.wrong.clear()
    with caplog.at_level(logging.WARNING):
        yield
    assert app.wrong == [], "\n".join([f"{len(app.wrong)} wrong:", *app.wrong[:10]])
    assert caplog.text == ""
    assert "Traceback" not in capfd.readouterr().err


def iter_paths(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """Yield the path of every item in a nested value, itself included; a list is represented by its first item."""
    yield path
    items = value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    for name, inside in items:
        yield from iter_paths(inside, (*path, name))


def get_item(value: Any, path: tuple) -> Any:
    for name in path:
        value = value[name]
    return value


def replace_item(value: Any, path: tuple, new: Any) -> Any:
    """Return a copy of a nested value with the item at `path` replaced."""
    if not path:
        return new
    first, *rest = path
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[first] = replace_item(value[first], tuple(rest), new)
    return copied


def mutated_bodies(body: Any, values: list[str], shift: int = 0, count: int = 1) -> Iterator[str]:
    """Yield a body with each of its fields replaced by wrong values, left out, or given twice.

    The replacements are `values`, or `count` others of `VALUES` for each field. In a state all fields are tried
    if there are `values` or `count` is above 1, otherwise a fifth.
    """
    turn = itertools.islice(itertools.cycle(VALUES), shift, None)
    for number, path in enumerate(iter_paths(body)):
        in_state = bool(path) and "temperature" in get_item(body, path[:-1])
        if not values and count == 1 and in_state and (number + shift) % 5:
            continue
        text = json.dumps(replace_item(body, path, PLACEHOLDER))
        for value in values or itertools.islice(turn, count):
            yield text.replace(json.dumps(PLACEHOLDER), value)
        if path and isinstance(path[-1], str) and (values or count > 1 or not in_state):
            yield text.replace(
                f"{json.dumps(path[-1])}: {json.dumps(PLACEHOLDER)}", f'"{path[-1]}": 1, "{path[-1]}": 1'
            )
            yield text.replace(f"{json.dumps(path[-1])}: {json.dumps(PLACEHOLDER)}", '"other": 1')


def example_value(name: str, schema: dict[str, Any], state: dict[str, Any]) -> Any:
    """Return an example value for a JSON schema."""
    if name == "state":
        return state
    if name in EXAMPLES:
        return EXAMPLES[name]
    if "enum" in schema:
        return schema["enum"][-1]
    if "properties" in schema:
        return {
            property_name: example_value(property_name, inner, state)
            for property_name, inner in schema["properties"].items()
        }
    if "anyOf" in schema:
        return example_value(name, schema["anyOf"][0], state)
    return {"string": "x", "integer": 0, "number": 0.5, "array": [], "boolean": True, "object": {}}[schema["type"]]


def make_arguments(types: ArgumentTypes, state: dict[str, Any]) -> list[Any]:
    """Return an example value for each argument of a function."""
    schema = types.schema
    values = []
    for name in types.names:
        inner = schema["properties"][name]
        inner = schema["$defs"][inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner
        assert inner.keys() & {"type", "enum", "properties", "anyOf"}, f"a function takes anything as {name}"
        assert name != "state" or "properties" in inner, "a function takes any object for the page's state"
        values.append(example_value(name, inner, state))
    return values


def routes(app: App) -> list[APIRoute]:
    """Return all routes of Gradio's app and of its routers."""
    api_routes = [route for route in app.blocks.app.routes if isinstance(route, APIRoute)]
    for router in app.blocks.app.routes:
        if router_app := getattr(router, "original_router", None):
            api_routes += [route for route in router_app.routes if isinstance(route, APIRoute)]
    return api_routes


def make_function_arguments(app: App, name: str) -> list[Any]:
    return make_arguments(argument_types(app.page.channel.functions[name]), app.state)


def question(app: App, kind: str) -> dict[str, Any]:
    """Return a page request with an action that has all possible fields."""
    schema = PageRequest.model_json_schema()
    assert {"about", "state", "action", "inspect"} == schema["properties"].keys()
    assert schema["$defs"]["Action"]["properties"].keys() == {"kind", *ACTION}
    point = {"x": 1, "y": 1, "layer": 0, "head": 0, "curve": 0, "item": 0}
    clicked = {"figure": "attention-pattern", "point": point}
    return {"about": "token", "state": app.state, "action": {"kind": kind, **ACTION}, "inspect": clicked}


ALL = pytest.param(VALUES, marks=pytest.mark.by_hand, id="all")
SOME = pytest.param([], id="some")


@pytest.mark.parametrize("values", [SOME, ALL])
def test_function_arguments(app, values):
    functions = list(app.page.channel.functions)
    assert len(functions) >= 12
    for shift, name in enumerate(functions):
        body = make_function_arguments(app, name)
        assert app.try_body("function", f"explorer/{name}", json.dumps(body)).status_code in (200, 422)
        for text in mutated_bodies(body, values, 8 * shift):
            app.try_body("function", f"explorer/{name}", text)


@pytest.mark.parametrize("values", [SOME, ALL])
def test_page_requests(app, values):
    kinds = list(app.page.actions._actions)
    assert len(kinds) >= 20
    for shift, kind in enumerate(kinds):
        body = question(app, kind)
        assert app.try_body("question", "explorer/answer", json.dumps(body)).status_code == 200
        if kind == "take":  # mutate the whole request once, otherwise its action only
            for text in mutated_bodies(body, values, shift, 2):
                app.try_body("question", "explorer/answer", text)
        for action in mutated_bodies(body["action"], [], 8 * shift, 3 if values else 1):
            text = json.dumps(body | {"action": PLACEHOLDER}).replace(json.dumps(PLACEHOLDER), action)
            app.try_body("question", "explorer/answer", text)


def finish_events(app: App, session: str, count: int):
    """Read the session's messages, and check how its `count` events ended."""
    with app.client.stream("GET", "gradio_api/queue/data", params={"session_hash": session}) as answer:
        for line in answer.iter_lines():
            message = json.loads(line[6:]) if line.startswith("data: ") else {}
            if message.get("msg") == "log" and len(html.unescape(message["log"])) > MAX_SENTENCE:
                app.wrong.append(f"{session}: {message}"[:400])
            if message.get("msg") != "process_completed":
                continue
            count -= 1
            app.counts["event", "done" if message["success"] else "error"] += 1
            error = None if message["success"] else message["output"].get("error")
            if not message["success"] and (not error or BROKEN in error or " " not in error):
                app.wrong.append(f"{session}: {message}")
    assert count == 0, f"{count} events of {session} never ended"


@pytest.mark.parametrize("values", [SOME, ALL])
def test_gradio_events(app, values):
    path, events = "gradio_api/queue/join", [fn for fn in app.blocks.fns.values() if fn.fn and not fn.cancels]
    assert {fn.name for fn in events} >= {"generate", "regenerate", "compare"}
    if not values:
        events = list({fn.name: fn for fn in events}.values())  # several buttons may have one handler
    for shift, fn in enumerate(events):
        data = make_arguments(argument_types(fn.fn, len(fn.inputs)), app.state)
        session, waiting = f"session {shift} {len(values)}", 0
        body = {"fn_index": fn._id, "session_hash": session, "data": data, "trigger_id": 1, "event_data": {"a": 1}}
        for text in [json.dumps(body), *mutated_bodies(body, values, 8 * shift)]:
            answer = app.try_body("queue", path, text)
            if answer.status_code == 200 and json.dumps({"session_hash": session})[1:-1] in text:
                waiting += 1
            if waiting == 40:
                waiting = finish_events(app, session, waiting) or 0
        if waiting:
            finish_events(app, session, waiting)


@pytest.mark.parametrize("values", [SOME, ALL])
def test_api_endpoints(app, values):
    public = [fn for fn in app.blocks.fns.values() if fn.api_visibility == "public"]
    assert {fn.api_name for fn in public} == {"explore", "generate"}
    for fn in public:
        types = argument_types(fn.fn, len(fn.inputs))
        data = make_arguments(types, app.state)
        named = dict(zip(types.names, data, strict=True))
        for path, body in ((f"call/{fn.api_name}", {"data": data}), (f"call/v2/{fn.api_name}", named)):
            for text in [json.dumps(body), *mutated_bodies(body, values)]:
                answer = app.try_body("endpoint", f"gradio_api/{path}", text)
                if answer.status_code == 200:
                    event = answer.json()["event_id"]
                    with app.client.stream("GET", f"gradio_api/call/{fn.api_name}/{event}") as stream:
                        events_text = "".join(stream.iter_text())
                    app.counts["event", "error" if "event: error" in events_text else "done"] += 1
                    if BROKEN in events_text or (
                        "event: complete" not in events_text and "event: error" not in events_text
                    ):
                        app.wrong.append(f"{path} {text[:300]}: {events_text[:300]}")


@pytest.mark.parametrize("values", [SOME, ALL])
def test_room_routes(app, values):
    rooms = app.page.rooms
    opened = app.client.post("rooms/open", json={}).json()
    student = {"code": opened["code"], "student": STUDENT}
    lesson = {"lesson": "tokens-and-merges", "step": 4}
    assert app.client.post("rooms/lead", json={**opened, "leads": True, "state": app.state, **lesson}).is_success
    examples = {
        "next": [student | {"seen": ""}, opened | {"seen": ""}],
        "lead": [{**opened, "leads": True, "state": app.state, **lesson}],
        "reply": [student | lesson | {"reply": "3"}],
        "close": [opened | {"key": "another"}],  # the room stays open
    }
    for shift, name in enumerate(rooms.handlers):
        for body in examples.get(name, [student if name == "leave" else {}]):
            for text in [json.dumps(body | {"lang": "en"}), *mutated_bodies(body | {"lang": "en"}, values, 3 * shift)]:
                app.try_body("room", f"rooms/{name}", text)


@pytest.mark.parametrize("values", [SOME, ALL])
def test_malformed_bodies(app, values):
    """Send malformed bodies to every route that accepts one."""
    paths = [*(f"rooms/{name}" for name in app.page.rooms.handlers), "explorer/answer", "explorer/define"]
    for route in routes(app):
        if "POST" in route.methods:
            paths.append(route.path.replace("{api_name}", "explore").replace("{api_name}", "x").lstrip("/"))
    assert len(paths) > 20
    bodies = [b"", b" ", b"\xff\xfe", b'"\xed\xa0\x80"', b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"{}" * 2, b"\x00"]
    for shift, path in enumerate(paths):
        for body in [*bodies, *(value.encode() for value in values or VALUES[shift % 10 :: 10])]:
            app.try_body("whole body", path, body)
        for kind in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            app.try_body("whole body", path, b"{}", headers={"Content-Type": kind})
        for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
            app.record_answer(method, path, b"", app.client.request(method, path))
        if values or "explorer/" in path or "rooms" in path:
            app.try_body("whole body", path, b'{"data": ["' + b"a" * (10 << 20) + b'"]}')


STRANGE_VALUES = ["", "x", "9" * 400, "../x", "\x00", "-1", "1.5", "nan", "a" * 4000, "é", "<b>", "[", "null", "%"]


@pytest.mark.parametrize(
    "values", [pytest.param(STRANGE_VALUES[:5], id="some"), pytest.param(STRANGE_VALUES, marks=pytest.mark.by_hand)]
)
def test_get_routes_with_strange_values(app, values):
    """Send strange values for every path and query parameter of every GET route."""
    tried = 0
    for route in routes(app):
        if "GET" not in route.methods or "login" in route.path:
            continue
        names = [parameter.name for parameter in route.dependant.path_params]
        queries = [parameter.alias for parameter in route.dependant.query_params]
        for value in values:
            path = route.path
            for name in names:
                path = re.sub(rf"\{{{name}(:path)?\}}", lambda _match: quote(value, safe=""), path)  # noqa: B023
            for query in [{}, *({name: value} for name in queries), {"other": value}]:
                with app.client.stream("GET", path.lstrip("/") or "/", params=query) as answer:
                    app.counts["read", answer.status_code] += 1
                    tried += 1
                    if answer.status_code >= 500:
                        app.wrong.append(f"{route.path} {path[:80]} {str(query)[:80]}: {answer.status_code}")
                if not names and not queries and value:
                    break
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert app.client.request(method, "health").status_code == 405
    assert tried > 100


NAMES = [
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-For",
    "X-Gradio-Server",
    "X-Visitor",
    "Origin",
    "Referer",
]
NAMES += [
    "Accept-Language",
    "Accept-Encoding",
    "Cookie",
    "Range",
    "If-Modified-Since",
    "If-None-Match",
    "Authorization",
]
NAMES += ["X-Gradio-User", "X-HF-User", "Accept", "User-Agent", "Content-Encoding", "Expect", "Upgrade", "Forwarded"]
HEADERS = [
    "",
    "x",
    "http://[::1",
    "[::1",
    ":99999",
    "\xff",
    "nan;q=nan",
    "q=1e999, en;q=-1",
    "bytes=x",
    "bytes=9-1,-",
    "lang=\xff",
]
HEADERS += ["bytes=0-99999999999999999999", "a" * 5000, "../..", "%00", "null"]


@pytest.mark.parametrize("values", [SOME, ALL])
def test_strange_headers(app, values):
    """Send strange header values for a page, a file, a page request, a function and an event."""
    page = app.client.get("/").text
    script = re.search(r'explorer/static/[^"]+/page\.js', page)[0]
    call, asking = (
        json.dumps(body).encode() for body in (make_function_arguments(app, "define"), question(app, "step"))
    )
    asks = ("GET", "/", b""), ("HEAD", "/?page=x&deep_link=y", b""), ("GET", script, b""), ("GET", "config", b"")
    asks += (("POST", "explorer/define", call), ("POST", "explorer/answer", asking))
    asks += (("POST", "gradio_api/queue/join", b"{}"),)
    step = 1 if values else 5
    for number, (name, value) in enumerate(itertools.islice(itertools.product(NAMES, HEADERS), 0, None, step)):
        method, path, body = asks[number % len(asks)]
        headers = {**(JSON if body else {}), name: value.encode("latin-1")}
        answer = app.client.request(method, path, content=body, headers=headers)
        app.counts["headers", answer.status_code] += 1
        if answer.status_code >= 500:
            app.wrong.append(f"{method} {path} {name}: {value[:60]!r}: {answer.status_code}")


def test_print_request_counts(app, capfd):
    """Print how many requests were sent, and their statuses."""
    counts = len(app.page.channel.functions), len(app.blocks.fns), len(app.page.rooms.handlers)
    fields = sum(len(list(iter_paths(make_function_arguments(app, name)))) for name in app.page.channel.functions)
    with capfd.disabled():
        print(f"\n{counts[0]} functions with {fields} fields, {counts[1]} events, {counts[2]} acts of rooms")
        for (kind, status), count in sorted(app.counts.items(), key=str):
            print(f"  {kind} {status}: {count}")
        print(f"  {sum(app.counts.values())} in all")
