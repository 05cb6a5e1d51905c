"""Figures declared as data: traces and layout with holes for a run's values.

Python fills the holes here, and JavaScript on the page without a server (web/without_server/figures.js).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from explorer.translations import translate
from explorer.views import graph_objects as go
from explorer.views.style import figure

PLACEHOLDER = re.compile(r"(?<![%{])\{(\w+)")  # not Plotly's %{x}, which is %{{x}} in a message with placeholders


def value(name: str) -> dict[str, Any]:
    """Return a hole for a value of any kind."""
    return {"$value": name}


def text(message: str, **other_names: str) -> dict[str, Any]:
    """Return a hole for a message marked by `N_`, which is translated, and formatted with values.

    Args:
        message: with names of values in braces; those after a percent sign are Plotly's.
        other_names: name in the message -> name of the value, where they differ.
    """
    return {"$text": message, "names": {name: name for name in PLACEHOLDER.findall(message)} | other_names}


def extend(name: str, **settings: Any) -> dict[str, Any]:
    """Return a hole for a dictionary, with more settings."""
    return {"$extend": name, "settings": settings}


def each(name: str, *items: Any) -> dict[str, Any]:
    """Return a hole in a list for repeated items: the value of this name is a list of each turn's own values."""
    return {"$each": name, "items": list(items)}


@dataclass(frozen=True)
class FigureTemplate:
    """A figure with holes; only `value`, `text`, `extend` and `each` make holes, all else is as Plotly has it.

    Attributes:
        alt: what the figure shows, in a sentence.
        traces: from the lowest to the uppermost.
        layout: Plotly's settings by name.
    """

    alt: Any
    traces: list[Any]
    layout: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, **values: Any) -> go.Figure:
        """Return the figure of these values."""
        layout = fill(self.layout, values)
        return figure(fill(self.traces, values), alt=fill(self.alt, values), **layout)

    def as_dict(self) -> dict[str, Any]:
        """Return the template as JSON has it."""
        return {"alt": self.alt, "traces": self.traces, "layout": dict(self.layout)}


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with values in its holes."""
    if isinstance(template, list):
        return [item for part in template for item in _fill_item(part, values)]
    if not isinstance(template, Mapping):
        return template
    if "$value" in template:
        return values[template["$value"]]
    if "$text" in template:
        return translate(template["$text"], **{name: values[own] for name, own in template["names"].items()})
    if "$extend" in template:
        return values[template["$extend"]] | fill(template["settings"], values)
    return {name: fill(part, values) for name, part in template.items()}


def _fill_item(part: Any, values: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(part, Mapping) and "$each" in part:
        yield from (fill(item, {**values, **own}) for own in values[part["$each"]] for item in part["items"])
    else:
        yield fill(part, values)
