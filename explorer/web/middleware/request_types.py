"""Types of the values in requests, each declared once.

They only describe the values; whether a model has such a layer, or how long a text may be, is checked where the
values are used.
"""

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from typing_extensions import NotRequired, TypedDict

from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import OTHER_PREFIX
from explorer.state.selection import Selection
from explorer.translations import _
from explorer.web.middleware.argument_types import STRICT
from explorer.web.protocol import ABOUT, STAGES

Index = Annotated[int, Field(ge=0, lt=10**9)]
Number = Annotated[float, Field(allow_inf_nan=False)]
WholeNumber = Annotated[int, Field(gt=-(2**53), lt=2**53)]  # as JavaScript has them exactly
Ids = str | list[Index]  # of tokens, as numbers or as their text
About = Literal[ABOUT]
Stage = Annotated[int, Field(ge=STAGES[0], le=STAGES[-1])]  # a Literal would take 1.0 and true for 1

_RUN_TYPES = {"checkpoint": str, "prompt": Ids, "generated": Ids, "dropped": Index, "edits": str | list[str]}
_OTHER_TYPES = {name: type_ | Literal[""] for name, type_ in _RUN_TYPES.items()} | {"pins": str, "text": str}
_TREE_TYPES = {"branches": str, "began": Index}
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
        "path": list[Index],
        "with": str,
        "checkpoint": str,
        "text": str,
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


class PointFields(TypedDict):
    """Coordinates of a clicked point, see `InspectionRequest`."""

    __pydantic_config__ = STRICT

    x: Number
    y: Number
    layer: NotRequired[Index | None]
    head: NotRequired[Index | None]
    curve: NotRequired[Index | None]
    item: NotRequired[Index | None]


class InspectionRequest(TypedDict):
    """A clicked point of a figure, whose element id is `picture`."""

    __pydantic_config__ = STRICT

    picture: str
    point: PointFields
