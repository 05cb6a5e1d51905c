"""Types of requests: strict JSON, each value's type once, bodies before Gradio reads them, errors in one sentence."""

import inspect
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, Literal

import gradio as gr
from pydantic import AfterValidator, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, create_model
from pydantic_core import ErrorDetails, PydanticCustomError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from typing_extensions import NotRequired, TypedDict

from explorer.errors import UserError
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import OTHER_PREFIX
from explorer.state.selection import Selection
from explorer.translations import N_, _, translate
from explorer.web.shared_constants import ABOUT, STAGES


def parse_json(body: bytes) -> Any:
    """Return the value of a JSON body; a lone surrogate is read as U+FFFD.

    Raises:
        UserError: it is not JSON in UTF-8, has NaN, an infinity or a repeated name in an object, or is nested too
            deeply.
    """
    try:
        return _parse(body.decode("utf-8-sig"))
    except RecursionError:
        raise UserError(_("The request is nested too deeply: send fewer lists within each other.")) from None
    except UnicodeDecodeError:
        raise UserError(_("The request must be JSON in UTF-8, and its bytes are not UTF-8.")) from None
    except json.JSONDecodeError as error:
        raise UserError(_("The request must be JSON, and is not from character {place} on.", place=error.pos)) from None
    except UserError:
        raise
    except ValueError:  # of an integer of thousands of digits
        raise UserError(_("The request has a number of too many digits.")) from None


def to_json_bytes(value: Any) -> bytes:
    """Return a value as JSON.

    Called on the computing thread: on the server's thread all other clients would wait for it.

    Raises:
        ValueError: a number is not finite.
    """
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def has_surrogates(body: bytes) -> bool:
    """Return whether a body may have a lone surrogate, which in UTF-8 can only be an escape."""
    return b"\\ud" in body or b"\\uD" in body


def _parse(text: str) -> Any:
    value = json.loads(text, object_pairs_hook=_to_dict, parse_constant=_refuse_constant, parse_float=_parse_float)
    if "\\ud" in text or "\\uD" in text:
        whole = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        return json.loads(whole.decode("utf-16-le", "replace"))
    return value


def _to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _value in pairs]
        repeated_name = next(name for name in names if names.count(name) > 1)
        raise UserError(_("The request has {name!r:.40} twice in one object: send it once.", name=repeated_name))
    return fields


def _refuse_constant(name: str):
    raise UserError(_("JSON has no number {name}: send a finite one.", name=name))


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        _refuse_constant(text[:40])
    return value


STRICT = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)
MAX_VALUE_CHARACTERS, MAX_DEPTH = 60, 6  # of a refused value and its place, as a sentence has them

# pydantic's name of an error -> the type that was wanted.
WANTED = {
    "int_type": N_("a whole number"),
    "int_from_float": N_("a whole number"),
    "float_type": N_("a number"),
    "finite_number": N_("a finite number"),
    "string_type": N_("text"),
    "string_too_long": N_("text of at most {max_length} characters"),
    "string_too_short": N_("text that is not empty"),
    "string_pattern_mismatch": N_("text of another form"),
    "bool_type": N_("true or false"),
    "list_type": N_("a list"),
    "too_long": N_("a list of at most {max_length} items"),
    "dict_type": N_("an object"),
    "model_type": N_("an object"),
    "mapping_type": N_("an object"),
    "literal_error": N_("one of {expected}"),
    "none_required": "null",
    "greater_than_equal": N_("at least {ge}"),
    "less_than_equal": N_("at most {le}"),
    "less_than": N_("less than {lt}"),
}


class ArgumentTypes:
    """Types of a function's arguments in order, without the request, which the server passes.

    Args:
        function: with annotated parameters; one without an annotation takes any value.
        count: number of arguments that are sent; None for all.
    """

    def __init__(self, function: Callable, count: int | None = None):
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
        sent = [one for one in parameters if one.annotation not in (gr.Request, Request)][:count]
        self.names = [parameter.name for parameter in sent]
        types = (Any if parameter.annotation is parameter.empty else parameter.annotation for parameter in sent)
        defaults = (... if parameter.default is parameter.empty else parameter.default for parameter in sent)
        fields = dict(zip(self.names, zip(types, defaults, strict=True), strict=True))
        self._model = create_model("Arguments", __config__=STRICT, **fields)

    @property
    def schema(self) -> dict[str, Any]:
        """The arguments by name, as JSON Schema."""
        return self._model.model_json_schema()

    def check(self, values: Any):
        """Raise UserError unless `values` is a list of arguments of the right types."""
        if not isinstance(values, list) or len(values) > len(self.names):
            wanted = ", ".join(self.names)
            raise UserError(
                _("The arguments must be a list ({wanted}), got {got}.", wanted=wanted or "0", got=quote_value(values))
            )
        self.check_named(dict(zip(self.names, values, strict=False)))

    def check_named(self, values: Any):
        """Raise UserError unless `values` maps the arguments' names to values of the right types."""
        try:
            self._model.model_validate(values)
        except ValidationError as error:
            raise UserError(validation_error_sentence(error, values)) from None


@cache
def argument_types(function: Callable, count: int | None = None) -> ArgumentTypes:
    """Return the cached types of a function's arguments."""
    return ArgumentTypes(function, count)


def check_object(types: TypeAdapter, value: Any):
    """Raise UserError if a value is not of a type."""
    try:
        types.validate_python(value)
    except ValidationError as error:
        raise UserError(validation_error_sentence(error, value)) from None


def validation_error_sentence(error: ValidationError, value: Any) -> str:
    """Return a sentence on a value's first error: its location, what was wanted, and what was got.

    Args:
        value: the validated value.
    """
    errors = error.errors(include_url=False, include_context=True)
    paths = [_path(details, value) for details in errors]
    deepest = max(paths, key=len)  # of a union's errors, those of the best matching type
    deepest_errors = [details for details, path in zip(errors, paths, strict=True) if path == deepest]
    name, first = _dotted_path(deepest), deepest_errors[0]
    if first["type"] == "missing":
        return _("{name} is missing.", name=name)
    if first["type"] == "extra_forbidden":
        return _("{name} is unknown here: leave it out.", name=name)
    if first["type"] not in WANTED:
        return _("{name} is refused: {why}.", name=name or "data", why=first["msg"])
    wanted, *others = dict.fromkeys(
        translate(WANTED[item["type"]]).format(**item.get("ctx", {}))
        for item in deepest_errors
        if item["type"] in WANTED
    )
    for other in others:
        wanted = _("{one} or {other}", one=wanted, other=other)
    return _("{name} must be {wanted}, got {got}.", name=name or "data", wanted=wanted, got=quote_value(first["input"]))


def quote_value(value: Any) -> str:
    """Return a value as JSON, truncated; only the kind of a list or an object."""
    if isinstance(value, list | tuple):
        return _("a list of {count}", count=len(value))
    if isinstance(value, dict):
        return _("an object")
    text = json.dumps(value[:MAX_VALUE_CHARACTERS] if isinstance(value, str) else value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_CHARACTERS else text[:MAX_VALUE_CHARACTERS] + "…"


def _path(details: ErrorDetails, value: Any) -> tuple[str | int, ...]:
    """Return the location of an error within a value: pydantic's, without the types that it tried there."""
    path: list[str | int] = []
    for part in details["loc"]:
        inside = isinstance(value, dict) and part in value
        if inside or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
            path.append(part)
        elif details["type"] == "missing" and part == details["loc"][-1]:
            path.append(part)
    return tuple(path)


def _dotted_path(path: Sequence[str | int]) -> str:
    """Format a path as state.prompt[3]."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part:.40}" for part in path[:MAX_DEPTH])
    return text.removeprefix(".") + "…" * (len(path) > MAX_DEPTH)


Index = Annotated[int, Field(ge=0, lt=10**9)]
Number = Annotated[float, Field(allow_inf_nan=False)]
ShortName = Annotated[str, Field(min_length=1, max_length=64)]  # of a visitor, a job or a figure
Coordinate = Annotated[float, Field(ge=-(10**9), le=10**9, allow_inf_nan=False)]
WholeNumber = Annotated[int, Field(gt=-(2**53), lt=2**53)]  # as JavaScript has them exactly
Ids = str | list[Index]  # of tokens, as numbers or as their text
About = Literal[ABOUT]
Stage = Annotated[int, Field(ge=STAGES[0], le=STAGES[-1])]  # a Literal would take 1.0 and true for 1

_RUN_TYPES = {"checkpoint": str, "prompt": Ids, "generated": Ids, "dropped": Index, "edits": str | list[str]}
_OTHER_TYPES = {name: type_ | Literal[""] for name, type_ in _RUN_TYPES.items()} | {"pins": str, "text": str}
_TREE_TYPES = {"branches": str, "began": Index, "chat": str}
_SELECTION_TYPES = {int: Index, float: Number, bool: bool, str: str}
_SETTING_TYPES = _SELECTION_TYPES | {int: WholeNumber}  # which are brought into their ranges


def _object(name: str, types: dict[str, Any], config: dict[str, Any] = STRICT) -> Any:
    """Return the type of an object with optional fields."""
    declared = TypedDict(name, types, total=False)
    declared.__pydantic_config__ = config
    return declared


_OWN = _object("OwnContinuations", _RUN_TYPES | _TREE_TYPES) | None
Action = _object(
    "Action",
    {
        "kind": str,
        "query": dict[str, str],
        "own": _OWN,
        "token": Index,
        "count": Index,
        "path": list[Index],
        "with": str,
        "checkpoint": str,
        "text": str,
        "messages": list[_object("Message", {"role": str, "content": str})],
        "a": Index,
        "b": Index,
        "pair": Index,
        "lesson": str,
        "step": Index,
        "reply": str,
        "words": dict[str, str],
    },
)
_STATE = _object(
    "State",
    {
        **{name: _SELECTION_TYPES[type(default)] for name, default in Selection().as_dict().items()},
        **{field.name: _SETTING_TYPES[field.type] for field in fields(GenerationSettings)},
        **_RUN_TYPES,
        **_TREE_TYPES,
        **{OTHER_PREFIX + name: type_ for name, type_ in _OTHER_TYPES.items()},
        **{"lang": str, "turn": Index, "version": str, "text": str},
    },
    STRICT | {"extra": "allow"},
)


def _check_unknown(state: dict[str, Any]) -> dict[str, Any]:
    """Allow unknown fields of simple values, which files saved by other versions of the page may have.

    Other values are rejected: Gradio would read a file of the server that they name. Fields that views of the user's
    own declare after these types were built are checked like the others.
    """
    defaults = Selection().as_dict()
    for name in state.keys() - _STATE.__annotations__.keys():
        if name in defaults:
            _check_declared(name, state[name], defaults[name])
            continue
        values = state[name] if isinstance(state[name], list) else [state[name]]
        if not all(value is None or isinstance(value, str | int | float) for value in values):
            wanted = _("{name:.40} is no field of the page’s state, and neither text nor a number", name=name)
            raise PydanticCustomError("unknown", "{wanted}", {"wanted": wanted})
    return state


def _check_declared(name: str, value: Any, default: str | int):
    wanted = _("{name:.40} is a whole number from 0", name=name) if isinstance(default, int) else ""
    wanted = wanted or _("{name:.40} is text", name=name)
    if type(value) is not type(default) or (isinstance(value, int) and not 0 <= value < 10**9):
        raise PydanticCustomError("unknown", "{wanted}", {"wanted": wanted})


State = Annotated[_STATE, AfterValidator(_check_unknown)]  # the page's


class ClickedPointFields(TypedDict):
    """Coordinates of a clicked point, see `InspectionRequest`."""

    __pydantic_config__ = STRICT

    x: Coordinate
    y: Coordinate
    layer: NotRequired[Index | None]
    head: NotRequired[Index | None]
    curve: NotRequired[Index | None]
    item: NotRequired[Index | None]


class InspectionRequest(TypedDict):
    """A clicked point of a figure, whose element id is `figure`."""

    __pydantic_config__ = STRICT

    figure: str
    point: ClickedPointFields


NOT_FOUND, TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, UNPROCESSABLE = 404, 413, 415, 422  # HTTP's statuses
Name = Annotated[str, Field(max_length=256)]  # that a client makes up
Session = Annotated[Name, Field(min_length=1)]  # Gradio's queue fails on an empty one
LENIENT = {"strict": True, "extra": "allow"}  # of what Gradio's clients send each other: newer ones may say more


class QueueJoinBody(TypedDict):
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


class EndpointCallBody(TypedDict):
    """A program's call of a named endpoint."""

    __pydantic_config__ = LENIENT

    data: list
    session_hash: NotRequired[Session | None]
    oauth_token: NotRequired[Name | None]


class QueueCancelBody(TypedDict):
    """A request to cancel an event."""

    __pydantic_config__ = LENIENT

    fn_index: Index
    session_hash: Session
    event_id: Name


class QueueEventEndBody(TypedDict):
    """A notice that an event ended."""

    __pydantic_config__ = LENIENT

    event_id: Name


def check_content_type(headers: Headers):
    """Raise HTTPException unless a body is sent as JSON: a form of another site, which may not open files, is not."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(UNSUPPORTED_MEDIA_TYPE, _("Send JSON, as Content-Type: application/json."))


def too_large_error(max_bytes: int) -> HTTPException:
    """Return the error for a body of more than `max_bytes`."""
    return HTTPException(TOO_LARGE, _("A request has at most {most:,} bytes.", most=max_bytes))


class RequestBodyValidator:
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
            r"queue/join": (QueueJoinBody, self._check_event),
            r"call/v2/(?P<name>[^/]+)": (dict, self._check_named),
            r"call/(?P<name>[^/]+)": (EndpointCallBody, self._check_call),
            r"cancel": (QueueCancelBody, None),
            r"reset": (QueueEventEndBody, None),
        }
        self._checks: list[tuple[re.Pattern, TypeAdapter, Callable | None]] = [
            (re.compile(rf"/gradio_api/{path}/?"), TypeAdapter(type_), check) for path, (type_, check) in checks.items()
        ]

    def check(self, path: str, headers: Headers, body: bytes) -> bytes:
        """Return the body to pass on, with U+FFFD in place of lone surrogates.

        Raises:
            HTTPException: the body is rejected.
        """
        routes = ((pattern.fullmatch(path), types, check) for pattern, types, check in self._checks)
        route, types, check = next((one for one in routes if one[0]), (None, None, None))
        if route is None:
            return body
        check_content_type(headers)
        try:
            value = parse_json(body)
            check_object(types, value)
            if check:
                check(value, **route.groupdict())
        except UserError as error:
            raise HTTPException(UNPROCESSABLE, str(error)) from None
        return to_json_bytes(value) if has_surrogates(body) else body

    def _check_event(self, event: QueueJoinBody):
        function = self.blocks.fns.get(event["fn_index"])
        if function is None or function.fn is None:
            raise HTTPException(NOT_FOUND, _("There is no event {number} here.", number=event["fn_index"]))
        types, data = argument_types(function.fn, len(function.inputs)), event["data"]
        if len(data) != len(types.names):  # Gradio fills no gap here
            wanted = ", ".join(types.names) or "0"
            raise UserError(
                _("The arguments must be a list ({wanted}), got {got}.", wanted=wanted, got=quote_value(data))
            )
        if function.api_visibility != "public" or _holds_file(data):
            types.check(data)

    def _check_call(self, call: EndpointCallBody, name: str):
        self._argument_types(name).check(call["data"])

    def _check_named(self, values: dict[str, Any], name: str):
        self._argument_types(name).check_named(values)

    def _argument_types(self, name: str) -> ArgumentTypes:
        """Return the argument types of a public endpoint.

        Raises:
            HTTPException: there is none of this name.
        """
        endpoints = (fn for fn in self.blocks.fns.values() if fn.api_name == name and fn.api_visibility == "public")
        if (function := next(endpoints, None)) is None:
            raise HTTPException(NOT_FOUND, _("There is no endpoint {name!r:.40} here.", name=name))
        return argument_types(function.fn, len(function.inputs))


def _holds_file(value: Any) -> bool:
    """Return whether Gradio would take a value, or a part of it, for a file and read it before the function runs."""
    if isinstance(value, dict):
        return "path" in value or any(map(_holds_file, value.values()))
    return isinstance(value, list) and any(map(_holds_file, value))
