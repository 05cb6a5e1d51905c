"""Registry of the views' names and of the fields that they add to the selection.

`explorer.views` registers every view that it finds; modules below it, which import no view, look them up here.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

# Groups of views in the page's order. "story": the steps of the story; "own": of the user's own model and views.
Group = Literal["story", "whole_model", "components", "prediction", "try", "further", "own"]
GROUPS: tuple[Group, ...] = get_args(Group)
MAX_SEARCH_CHARS = 40  # characters
FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class SelectionField:
    """A field that a view adds to the selection.

    It then is part of the URL and of every request, and has a list or a text box among the view's controls.

    Attributes:
        name: in the URL; lower-case letters, digits and underscores.
        default: text or a whole number from 0; values have its type.
        label: before the list, translated on use; "" for a field without a list, which clicks set.
        values: the possible values, or a mapping of values to their texts in the list, translated on use; None for
            any value.
        options: (trace, selection) -> the (value, text) pairs of the list, where these depend on the run.
        is_free: whether any other text may be typed, too.
    """

    name: str
    default: str | int
    label: str = ""
    values: Collection[str | int] | None = None
    options: Callable[[Any, Any], list[tuple[Any, str]]] | None = None
    is_free: bool = False

    def __post_init__(self):
        if not isinstance(self.name, str) or not FIELD_NAME.fullmatch(self.name):
            raise ValueError(f"a field's name has lower-case letters, digits and underscores, got {self.name!r:.60}")
        for value in (self.default, *(self.values or ())):
            if type(value) not in (str, int) or (type(value) is int and not 0 <= value < 10**9):
                raise ValueError(f"{self.name} is text or a whole number from 0, got {value!r:.60}")
            if type(value) is not type(self.default):
                raise ValueError(f"the values of {self.name} are of one type, got {value!r:.60}")
        if self.values is not None and self.default not in self.values:
            raise ValueError(f"the default of {self.name} is one of its values, got {self.default!r:.60}")

    @property
    def texts(self) -> dict[str | int, str]:
        """The possible values with their texts, untranslated; empty for any value."""
        if isinstance(self.values, Mapping):
            return dict(self.values)
        return {value: str(value) for value in self.values or ()}

    def clamp(self, value: str | int) -> str | int:
        """Return a value of the field's type, or the nearest that is allowed."""
        if self.values is not None:
            return value if value in self.values else self.default
        return value[:MAX_SEARCH_CHARS] if self.is_free and isinstance(value, str) else value


_groups: dict[str, Group] = {}  # view -> its group
_names: dict[str, str] = {}  # view, or a former name of one in a saved URL -> view
_fields: dict[str, SelectionField] = {}


def register_view(
    name: str, group: Group, fields: Iterable[SelectionField] = (), former_names: Iterable[str] = ()
) -> None:
    """Register a view's name and fields; several views may share a field, which is one object then.

    Raises:
        ValueError: a name is taken; nothing is registered then.
    """
    names, field_by_name = dict.fromkeys((name, *former_names), name), dict(_fields)
    for view_name in names.keys() & _names.keys():
        raise ValueError(f"the name {view_name!r} is taken")
    for field in fields:
        if field_by_name.setdefault(field.name, field) is not field:
            raise ValueError(f"the name {field.name!r} is taken")
    _groups[name] = group
    _names.update(names)
    _fields.update(field_by_name)


def view_names() -> tuple[str, ...]:
    """Return the names of all views.

    Raises:
        RuntimeError: no views are registered.
    """
    if not _groups:
        raise RuntimeError("no views are registered: import explorer.views first")
    return tuple(_groups)


def resolve_tab(name: Any) -> str | None:
    """Return the view of that name or former name; None if there is none.

    Raises:
        RuntimeError: no views are registered.
    """
    return _names.get(name) if view_names() and isinstance(name, str) else None


def is_story_view(name: str) -> bool:
    """Return whether a view is a step of the story."""
    return _groups.get(name) == "story"


def registered_fields() -> tuple[SelectionField, ...]:
    """Return the fields that views added to the selection."""
    return tuple(_fields.values())


def find_field(name: str) -> SelectionField:
    """Return the field of that name.

    Raises:
        KeyError: no view declares such a field.
    """
    if name not in _fields:
        raise KeyError(f"no view declares a field {name!r}; the declared fields are {', '.join(_fields) or 'none'}")
    return _fields[name]
