"""What programs and the page's script may send to Gradio in the bodies of requests: checked before Gradio reads it."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import gradio as gr
from pydantic import Field, JsonValue, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from explorer.language import _
from explorer.state.errors import UserError
from explorer.web.http.argument_types import ArgumentTypes, argument_types, check_object
from explorer.web.http.request_types import Index
from explorer.web.http.server_functions import as_json
from explorer.web.http.strict_json import has_surrogates, parse_json

NOT_FOUND, WRONG_KIND, WRONG_VALUE = 404, 415, 422  # HTTP's statuses
Name = Annotated[str, Field(max_length=256)]  # that a client makes up
LENIENT = {"strict": True, "extra": "allow"}  # of what Gradio's clients send each other: newer ones may say more


class ServerCall(TypedDict):
    """A call of a server function of a component."""

    __pydantic_config__ = LENIENT

    component_id: Index
    fn_name: Name
    session_hash: Name
    data: list


class Join(TypedDict):
    """An event that is put into the queue."""

    __pydantic_config__ = LENIENT

    fn_index: Index
    session_hash: Name
    data: list
    event_data: NotRequired[dict[str, JsonValue] | None]
    event_id: NotRequired[Name | None]
    trigger_id: NotRequired[Index | None]
    simple_format: NotRequired[bool]
    batched: NotRequired[Literal[False] | None]
    oauth_token: NotRequired[Name | None]


class Call(TypedDict):
    """A program's call of an endpoint by its name."""

    __pydantic_config__ = LENIENT

    data: list
    session_hash: NotRequired[Name | None]
    oauth_token: NotRequired[Name | None]


class Cancel(TypedDict):
    """An event that is to end."""

    __pydantic_config__ = LENIENT

    fn_index: Index
    session_hash: Name
    event_id: Name


class Reset(TypedDict):
    """An event that ended."""

    __pydantic_config__ = LENIENT

    event_id: Name


class BodyError(UserError):
    """A request's body is refused, with a status of HTTP."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


class RequestChecks:
    """Checks bodies by the routes that they are sent to.

    What is in `data` a server function and the queue check themselves (`server_function`, `SpokenBlocks`), as they are
    called in other ways, too.

    Args:
        blocks: whose functions are called.
    """

    def __init__(self, blocks: gr.Blocks):
        self.blocks = blocks
        checks = {
            r"component_server": (ServerCall, self._check_function),
            r"queue/join": (Join, self._check_event),
            r"call/v2/(?P<name>[^/]+)": (dict, self._check_named),
            r"call/(?P<name>[^/]+)": (Call, self._check_call),
            r"cancel": (Cancel, None),
            r"reset": (Reset, None),
        }
        self._checks: list[tuple[re.Pattern, TypeAdapter, Callable | None]] = [
            (re.compile(rf"/gradio_api/{path}/?"), TypeAdapter(type_), check) for path, (type_, check) in checks.items()
        ]

    def check(self, path: str, content_type: str, body: bytes) -> bytes:
        """The body as it is passed on: with U+FFFD in the place of lone surrogates.

        Raises:
            BodyError: it is refused.
        """
        found = ((pattern.fullmatch(path), types, check) for pattern, types, check in self._checks)
        route, types, check = next((one for one in found if one[0]), (None, None, None))
        if route is None:
            return body
        if content_type.partition(";")[0].strip().lower() != "application/json":
            raise BodyError(WRONG_KIND, _("Send JSON, as Content-Type: application/json."))
        try:
            value = parse_json(body)
            check_object(types, value)
            if check:
                check(value, **route.groupdict())
        except BodyError:
            raise
        except UserError as error:
            raise BodyError(WRONG_VALUE, str(error)) from None
        return as_json(value) if has_surrogates(body) else body

    def _check_function(self, call: ServerCall):
        component = self.blocks.blocks.get(call["component_id"])
        function = getattr(component, call["fn_name"], None)
        if not getattr(function, "_is_server_fn", False):
            raise BodyError(NOT_FOUND, _("There is no function {name!r:.40} here.", name=call["fn_name"]))

    def _check_event(self, event: Join):
        function = self.blocks.fns.get(event["fn_index"])
        if function is None or function.fn is None:
            raise BodyError(NOT_FOUND, _("There is no event {number} here.", number=event["fn_index"]))

    def _check_call(self, call: Call, name: str):
        self._types(name).check(call["data"])

    def _check_named(self, values: dict[str, Any], name: str):
        self._types(name).check_named(values)

    def _types(self, name: str) -> ArgumentTypes:
        """The types of an endpoint's arguments; of the page's own events there are none for programs."""
        found = (fn for fn in self.blocks.fns.values() if fn.api_name == name and fn.api_visibility == "public")
        if (function := next(found, None)) is None:
            raise BodyError(NOT_FOUND, _("There is no endpoint {name!r:.40} here.", name=name))
        return argument_types(function.fn, len(function.inputs))
