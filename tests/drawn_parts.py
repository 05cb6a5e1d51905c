"""Where the parts of a plotly figure are drawn, and what is told of them."""

import base64
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

PLACEHOLDER = re.compile(r"%\{(\w+)(?:\[(\d+)\])?(?::([^}]*))?\}")


def cells(part: Mapping[str, Any]) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Of a heatmap, but for gaps that the pointer passes by."""
    rows, columns = np.shape(part["z"])
    x, y = (middles(part.get(letter), size) for letter, size in (("x", columns), ("y", rows)))
    for i, j in product(range(rows), range(columns)):
        z = part["z"][i][j]
        if z is not None or part.get("hoverongaps", True):
            yield (i, j), {"x": x[j], "y": y[i], "z": z}


def middles(places: Sequence | None, size: int) -> Sequence:
    """Of cells that may be given by their edges, or not at all."""
    if places is None:
        return range(size)
    return [(a + b) / 2 for a, b in zip(places, places[1:], strict=False)] if len(places) > size else places


def dots(part: Mapping[str, Any]) -> Iterator[tuple[tuple[int], dict[str, Any]]]:
    """Of bars and lines, but for their gaps."""
    x, y = part.get("x"), part.get("y")
    for i in range(len(x if x is not None else y)):
        place = {"x": i if x is None else x[i], "y": i if y is None else y[i]}
        if None not in place.values():
            yield (i,), place


def unpacked(value: Any) -> Any:
    """JSON with its typed arrays as lists, and None for what is no number."""
    if isinstance(value, list):
        return [unpacked(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "bdata" not in value:
        return {name: unpacked(part) for name, part in value.items()}
    array = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    if "shape" in value:
        array = array.reshape([int(size) for size in str(value["shape"]).split(",")])
    return np.where(np.isnan(array), None, array).tolist()


def element(values: Any, at: tuple[int, ...]) -> Any:
    """A point's own of the values, or the one that all share."""
    for i in at:
        if not isinstance(values, list):
            return values
        values = values[i]
    return values


def filled(template: str, known: Mapping[str, Any]) -> str:
    """A hover template as plotly fills it in, as plain text; what stands in <extra> is left out."""

    def fill(match: re.Match) -> str:
        name, index, form = match.groups()
        value = known[name][int(index)] if index else known[name]
        if form is None:
            return str(value)
        plus, form = "+" * form.startswith("+"), form.removeprefix("+")
        full = "#" * form.endswith("g")  # d3 writes all significant digits
        return f"{value:{plus}{full}{form}}".replace("-", "−")

    text = re.sub(r"<extra>.*", "", PLACEHOLDER.sub(fill, template))
    return html.unescape(text.replace("<br>", "\n"))


def numbers_in(sent) -> list[float]:
    """All in what the browser gets, in order; none of what is written in a text."""
    return list(_numbers(unpacked(sent)))


def _numbers(value) -> Iterator[float]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
