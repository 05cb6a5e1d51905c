"""Points of Plotly traces and their hover texts."""

import base64
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

PLACEHOLDER = re.compile(r"%\{(\w+)(?:\[(\d+)\])?(?::([^}]*))?\}")


def iter_cells(trace: Mapping[str, Any]) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Yield index and values of a heatmap's cells, without gaps that do not respond to the pointer."""
    rows, columns = np.shape(trace["z"])
    x, y = (cell_centres(trace.get(letter), size) for letter, size in (("x", columns), ("y", rows)))
    for i, j in product(range(rows), range(columns)):
        z = trace["z"][i][j]
        if z is not None or trace.get("hoverongaps", True):
            yield (i, j), {"x": x[j], "y": y[i], "z": z}


def cell_centres(coordinates: Sequence | None, size: int) -> Sequence:
    """Return the centres of cells that may be given by their edges, or not at all."""
    if coordinates is None:
        return range(size)
    return (
        [(a + b) / 2 for a, b in zip(coordinates, coordinates[1:], strict=False)]
        if len(coordinates) > size
        else coordinates
    )


def iter_dots(trace: Mapping[str, Any]) -> Iterator[tuple[tuple[int], dict[str, Any]]]:
    """Yield index and values of the points of bars and lines, without their gaps."""
    x, y = trace.get("x"), trace.get("y")
    for i in range(len(x if x is not None else y)):
        values = {"x": i if x is None else x[i], "y": i if y is None else y[i]}
        if None not in values.values():
            yield (i,), values


def unpack_arrays(value: Any) -> Any:
    """Return JSON with its typed arrays as lists, and None for NaN."""
    if isinstance(value, list):
        return [unpack_arrays(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "bdata" not in value:
        return {name: unpack_arrays(item) for name, item in value.items()}
    array = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    if "shape" in value:
        array = array.reshape([int(size) for size in str(value["shape"]).split(",")])
    return np.where(np.isnan(array), None, array).tolist()


def get_element(values: Any, index: tuple[int, ...]) -> Any:
    """Return the value of a point: its own, or the one that all points share."""
    for i in index:
        if not isinstance(values, list):
            return values
        values = values[i]
    return values


def fill_template(template: str, fields: Mapping[str, Any]) -> str:
    """Fill in a hover template as Plotly does, as plain text, without its <extra>."""

    def fill(match: re.Match) -> str:
        name, index, form = match.groups()
        value = fields[name][int(index)] if index else fields[name]
        if form is None:
            return str(value)
        plus, form = "+" * form.startswith("+"), form.removeprefix("+")
        full = "#" * form.endswith("g")  # d3 writes all significant digits
        return f"{value:{plus}{full}{form}}".replace("-", "−")

    text = re.sub(r"<extra>.*", "", PLACEHOLDER.sub(fill, template))
    return html.unescape(text.replace("<br>", "\n"))


def collect_numbers(content) -> list[float]:
    """Return all numbers of a figure's JSON in order, without those in texts."""
    return list(_numbers(unpack_arrays(content)))


def _numbers(value) -> Iterator[float]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
