"""The types of a function's arguments, as its signature declares them: checked where a request calls it, in a sentence.

Checks are strict: 1.0 and true are no whole numbers, "3" is no number, and no name is left out or made up.
"""

import inspect
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import gradio as gr
from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic_core import ErrorDetails

from explorer.language import N_, _, look_up
from explorer.state.errors import UserError

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
    """What a function takes of what is sent, in order; a `gr.Request` is Gradio's to give.

    Args:
        function: whose parameters have types; one without takes anything.
        count: how many arguments are sent; None for all.
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
        """The arguments by their names, as JSON Schema."""
        return self._model.model_json_schema()

    def check(self, values: Any):
        """UserError where values, a list, are none that the function takes."""
        if not isinstance(values, list) or len(values) > len(self.names):
            wanted = ", ".join(self.names)
            raise UserError(_("A call is a list of {wanted}, got {got}.", wanted=wanted or "0", got=quote(values)))
        self.check_named(dict(zip(self.names, values, strict=False)))

    def check_named(self, values: Any):
        """The same of values by their names."""
        try:
            self._model.model_validate(values)
        except ValidationError as error:
            raise UserError(explain(error, values)) from None


@cache
def argument_types(function: Callable, count: int | None = None) -> ArgumentTypes:
    """The types of a function's arguments, worked out once."""
    return ArgumentTypes(function, count)


def check_object(types: TypeAdapter, value: Any):
    """UserError where a value is none of a type."""
    try:
        types.validate_python(value)
    except ValidationError as error:
        raise UserError(explain(error, value)) from None


def explain(error: ValidationError, value: Any) -> str:
    """Say in a sentence what is wrong first: where, what was wanted, and what was got.

    Args:
        value: that was checked.
    """
    errors = error.errors(include_url=False, include_context=True)
    paths = [_path(details, value) for details in errors]
    deepest = max(paths, key=len)  # of a value that may have several types, in the one that it nearly has
    here = [details for details, path in zip(errors, paths, strict=True) if path == deepest]
    name, first = _in_dots(deepest), here[0]
    if first["type"] == "missing":
        return _("{name} is missing.", name=name)
    if first["type"] == "extra_forbidden":
        return _("{name} is unknown here: leave it out.", name=name)
    if first["type"] not in WANTED:
        return _("{name} is refused: {why}.", name=name or "data", why=first["msg"])
    wanted, *others = dict.fromkeys(
        look_up(WANTED[each["type"]]).format(**each.get("ctx", {})) for each in here if each["type"] in WANTED
    )
    for other in others:
        wanted = _("{one} or {other}", one=wanted, other=other)
    return _("{name} must be {wanted}, got {got}.", name=name or "data", wanted=wanted, got=quote(first["input"]))


def quote(value: Any) -> str:
    """A value as JSON has it, cut off; of a list or an object only that it is one."""
    if isinstance(value, list | tuple):
        return _("a list of {count}", count=len(value))
    if isinstance(value, dict):
        return _("an object")
    text = json.dumps(value[:MAX_VALUE_CHARACTERS] if isinstance(value, str) else value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_CHARACTERS else text[:MAX_VALUE_CHARACTERS] + "…"


def _path(details: ErrorDetails, value: Any) -> tuple[str | int, ...]:
    """Where in a value an error is: what pydantic says, without the types that it tried there."""
    path: list[str | int] = []
    for part in details["loc"]:
        inside = isinstance(value, dict) and part in value
        if inside or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
            path.append(part)
        elif details["type"] == "missing" and part == details["loc"][-1]:
            path.append(part)
    return tuple(path)


def _in_dots(path: Sequence[str | int]) -> str:
    """A path as programs write it: state.prompt[3]."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part:.40}" for part in path[:MAX_DEPTH])
    return text.removeprefix(".") + "…" * (len(path) > MAX_DEPTH)
