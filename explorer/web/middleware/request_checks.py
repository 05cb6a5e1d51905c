"""Validation of the bodies of requests before Gradio reads them."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import gradio as gr
from pydantic import Field, JsonValue, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from explorer.errors import UserError
from explorer.translations import _
from explorer.web.middleware.request_types import (
    ArgumentTypes,
    Index,
    argument_types,
    as_json,
    check_object,
    has_surrogates,
    parse_json,
    quote_value,
)

NOT_FOUND, UNSUPPORTED_MEDIA_TYPE, UNPROCESSABLE = 404, 415, 422  # HTTP's statuses
Name = Annotated[str, Field(max_length=256)]  # that a client makes up
Session = Annotated[Name, Field(min_length=1)]  # Gradio's queue fails on an empty one
LENIENT = {"strict": True, "extra": "allow"}  # of what Gradio's clients send each other: newer ones may say more


class JoinBody(TypedDict):
    """An event that enters the queue."""

    __pydantic_config__ = LENIENT

    fn_index: Index
    session_hash: Session
    data: list
    event_data: NotRequired[dict[str, JsonValue] | None]
    event_id: NotRequired[Name | None]
    trigger_id: NotRequired[Index | None]
    simple_format: NotRequired[bool]
    batched: NotRequired[Literal[False] | None]
    oauth_token: NotRequired[Name | None]


class CallBody(TypedDict):
    """A program's call of a named endpoint."""

    __pydantic_config__ = LENIENT

    data: list
    session_hash: NotRequired[Session | None]
    oauth_token: NotRequired[Name | None]


class CancelBody(TypedDict):
    """A request to cancel an event."""

    __pydantic_config__ = LENIENT

    fn_index: Index
    session_hash: Session
    event_id: Name


class ResetBody(TypedDict):
    """A notice that an event ended."""

    __pydantic_config__ = LENIENT

    event_id: Name


class BodyError(UserError):
    """A rejected request body, with an HTTP status."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


class RequestChecks:
    """Checks of request bodies by route.

    The arguments of public functions that come through the queue are checked when these are called: Gradio's client for
    Python expects the sentence there, and fails on a status of 422. Objects and lists are checked here, as Gradio reads
    files that they name before the call.

    Args:
        blocks: the app whose functions are called.
    """

    def __init__(self, blocks: gr.Blocks):
        self.blocks = blocks
        checks = {
            r"queue/join": (JoinBody, self._check_event),
            r"call/v2/(?P<name>[^/]+)": (dict, self._check_named),
            r"call/(?P<name>[^/]+)": (CallBody, self._check_call),
            r"cancel": (CancelBody, None),
            r"reset": (ResetBody, None),
        }
        self._checks: list[tuple[re.Pattern, TypeAdapter, Callable | None]] = [
            (re.compile(rf"/gradio_api/{path}/?"), TypeAdapter(type_), check) for path, (type_, check) in checks.items()
        ]

    def check(self, path: str, content_type: str, body: bytes) -> bytes:
        """Return the body to pass on, with U+FFFD in place of lone surrogates.

        Raises:
            BodyError: the body is rejected.
        """
        routes = ((pattern.fullmatch(path), types, check) for pattern, types, check in self._checks)
        route, types, check = next((one for one in routes if one[0]), (None, None, None))
        if route is None:
            return body
        if content_type.partition(";")[0].strip().lower() != "application/json":
            raise BodyError(UNSUPPORTED_MEDIA_TYPE, _("Send JSON, as Content-Type: application/json."))
        try:
            value = parse_json(body)
            check_object(types, value)
            if check:
                check(value, **route.groupdict())
        except BodyError:
            raise
        except UserError as error:
            raise BodyError(UNPROCESSABLE, str(error)) from None
        return as_json(value) if has_surrogates(body) else body

    def _check_event(self, event: JoinBody):
        function = self.blocks.fns.get(event["fn_index"])
        if function is None or function.fn is None:
            raise BodyError(NOT_FOUND, _("There is no event {number} here.", number=event["fn_index"]))
        types, data = argument_types(function.fn, len(function.inputs)), event["data"]
        if len(data) != len(types.names):  # Gradio fills no gap here
            wanted = ", ".join(types.names) or "0"
            raise UserError(
                _("The arguments must be a list ({wanted}), got {got}.", wanted=wanted, got=quote_value(data))
            )
        if function.api_visibility != "public" or _holds_file(data):
            types.check(data)

    def _check_call(self, call: CallBody, name: str):
        self._argument_types(name).check(call["data"])

    def _check_named(self, values: dict[str, Any], name: str):
        self._argument_types(name).check_named(values)

    def _argument_types(self, name: str) -> ArgumentTypes:
        """Return the argument types of a public endpoint.

        Raises:
            BodyError: there is none of this name.
        """
        endpoints = (fn for fn in self.blocks.fns.values() if fn.api_name == name and fn.api_visibility == "public")
        if (function := next(endpoints, None)) is None:
            raise BodyError(NOT_FOUND, _("There is no endpoint {name!r:.40} here.", name=name))
        return argument_types(function.fn, len(function.inputs))


def _holds_file(value: Any) -> bool:
    """Return whether Gradio would take a value, or a part of it, for a file and read it before the function runs."""
    if isinstance(value, dict):
        return "path" in value or any(map(_holds_file, value.values()))
    return isinstance(value, list) and any(map(_holds_file, value))
