"""The types of what requests hold, each declared once.

They say what a value is; whether a model has such a layer, and how long a text may be, those say who read it.
"""

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from typing_extensions import NotRequired, TypedDict

from explorer.language import _
from explorer.state.page_state import OF_OTHER
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.web.http.argument_types import STRICT
from explorer.web.protocol import ABOUT, PARTS

Index = Annotated[int, Field(ge=0, lt=10**9)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, Field(gt=-(2**53), lt=2**53)]  # as JavaScript has them exactly
Ids = str | list[Index]  # of tokens, as numbers or as their text
About = Literal[ABOUT]
Part = Annotated[int, Field(ge=PARTS[0], le=PARTS[-1])]  # a Literal would take 1.0 and true for 1

_OF_RUN = {"checkpoint": str, "prompt": Ids, "generated": Ids, "dropped": Index, "edits": str | list[str]}
_OF_OTHER = {name: type_ | Literal[""] for name, type_ in _OF_RUN.items()} | {"pins": str, "text": str}
_OF_TREE = {"branches": str, "began": Index}
_OF_SELECTION = {int: Index, float: Number, bool: bool, str: str}
_OF_SETTINGS = _OF_SELECTION | {int: Whole}  # which are brought into their ranges


def _object(name: str, types: dict[str, Any], config: dict[str, Any] = STRICT) -> Any:
    """The type of an object that may have some fields."""
    declared = TypedDict(name, types, total=False)
    declared.__pydantic_config__ = config
    return declared


Move = _object(
    "Move",
    {
        "kind": str,
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
        **{field.name: _OF_SELECTION[field.type] for field in fields(Selection)},
        **{field.name: _OF_SETTINGS[field.type] for field in fields(GenerationSettings)},
        **_OF_RUN,
        **_OF_TREE,
        **{OF_OTHER + name: type_ for name, type_ in _OF_OTHER.items()},
        **{"lang": str, "turn": Index, "version": str, "text": str, "move": Move},
        "own": _object("OwnContinuations", _OF_RUN | _OF_TREE) | None,
    },
    STRICT | {"extra": "allow"},
)


def _check_unknown(state: dict[str, Any]) -> dict[str, Any]:
    """Names that the page's state has not are left alone, as files that other versions of the page saved have them: of
    the same simple values. Gradio would read a file of a server's that others name."""
    for name in state.keys() - _STATE.__annotations__.keys():
        values = state[name] if isinstance(state[name], list) else [state[name]]
        if not all(value is None or isinstance(value, str | int | float) for value in values):
            wanted = _("{name:.40} is no field of the page’s state, and neither text nor a number", name=name)
            raise PydanticCustomError("unknown", "{wanted}", {"wanted": wanted})
    return state


State = Annotated[_STATE, AfterValidator(_check_unknown)]  # the page's


class PointFields(TypedDict):
    """What was clicked, see `Point`."""

    __pydantic_config__ = STRICT

    x: Number
    y: Number
    layer: NotRequired[Index | None]
    head: NotRequired[Index | None]
    curve: NotRequired[Index | None]
    item: NotRequired[Index | None]
