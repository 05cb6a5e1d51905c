"""Validation of a function's arguments against its type annotations, with an error in one sentence.

Checks are strict: 1.0 and true are not whole numbers, "3" is not a number, and no name may be missing or unknown.
"""

import inspect
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import gradio as gr
from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic_core import ErrorDetails

from explorer.state.errors import UserError
from explorer.translations import N_, _, translate

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
    """Types of a function's arguments in order, without a `gr.Request`, which Gradio passes.

    Args:
        function: with annotated parameters; one without an annotation takes any value.
        count: number of arguments that are sent; None for all.
    """

    def __init__(self, function: Callable, count: int | None = None):
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
        sent = [parameter for parameter in parameters if parameter.annotation is not gr.Request][:count]
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
            raise UserError(explain_error(error, values)) from None


@cache
def argument_types(function: Callable, count: int | None = None) -> ArgumentTypes:
    """Return the cached types of a function's arguments."""
    return ArgumentTypes(function, count)


def check_object(types: TypeAdapter, value: Any):
    """Raise UserError if a value is not of a type."""
    try:
        types.validate_python(value)
    except ValidationError as error:
        raise UserError(explain_error(error, value)) from None


def explain_error(error: ValidationError, value: Any) -> str:
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
