"""Figures in their panels: Plotly's, the grid of small heatmaps, the table of heads, and the maps of a model."""

import base64
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from plotly.io.json import to_json_plotly

from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.overview.map_parts import MapPart, ModelMap
from explorer.views.overview.whole_model import WholeModelFigure
from explorer.views.view import HeadHeatmaps, HeadTable
from explorer.web.widgets import EVIDENCE, HtmlWidget, escape_text, fill_template, json_attribute
from explorer.web.widgets.teaching import WalkthroughButton

MAX_CELLS = 1 << 17  # that Plotly draws
NUM_LEVELS = (1 << 16) - 2  # levels between minimum and maximum; one more encodes NaN
UNSUPPORTED_FIELDS = ("text", "hovertext", "colorscale", "customdata")  # fields that an image cannot show


def encode_large_heatmap(figure: go.Figure) -> go.Figure:
    """Return the figure with a large heatmap's `z` replaced by encoded `cells`, or unchanged.

    Values between -1 and 1 have 16 bits, others are float32; of a lower triangular heatmap only the lower half is
    sent.
    """
    traces, layout = figure.traces_and_layout
    if len(traces) != 1 or traces[0].get("type") != "heatmap" or "changes" in layout["meta"]:
        return figure
    (trace,) = traces
    z = trace.get("z")
    if (
        not isinstance(z, np.ndarray)
        or z.size <= MAX_CELLS
        or any(trace.get(name) is not None for name in UNSUPPORTED_FIELDS)
    ):
        return figure
    labels = {axis: np.asarray(trace[axis]).tolist() for axis in "xy" if trace.get(axis) is not None}
    rest = {name: value for name, value in trace.items() if name != "z"}
    return figure.with_traces_and_layout([rest | labels | {"cells": encode_heatmap_cells(z)}], layout)


def encode_heatmap_cells(z: np.ndarray) -> dict[str, Any]:
    """Encode a heatmap's values (rows, columns) for the browser in few bytes."""
    rows, columns = z.shape
    lower = rows == columns and bool(np.isnan(z[np.triu_indices(rows, 1)]).all())
    values = z[np.tril_indices(rows)] if lower else z.reshape(-1)
    minimum, maximum = (float(reduce(values, initial=0)) for reduce in (np.nanmin, np.nanmax))
    if minimum >= -1 and maximum <= 1:
        shares = np.nan_to_num((values - minimum) / ((maximum - minimum) or 1), nan=(NUM_LEVELS + 1) / NUM_LEVELS)
        data, kind = np.rint(shares * NUM_LEVELS).astype("<u2"), "u2"
    else:
        data, kind = values.astype("<f4"), "f4"
    text = base64.b64encode(data).decode("ascii")
    return {
        "rows": rows,
        "columns": columns,
        "lower": lower,
        "least": minimum,
        "most": maximum,
        "kind": kind,
        "data": text,
    }


# a role that may hold what is clicked, and one that lets the arrow keys through where they choose
GROUP = 'role="group"'
CHOOSING = 'role="application" aria-description="{keys}"'
KEYS = N_("Arrow keys move the selection, Enter tells how the selected number comes about.")


class PlotlyFigureWidget(HtmlWidget):
    """A Plotly figure that keeps its zoom when redrawn, follows the page's theme, and turns clicks into selections.

    Args:
        selects: "x", "y" or "customdata" of a clicked point -> the field of the state it sets.
        to_steps: whether "customdata" of its points names the training step that a click selects.
        height, min_plot_width: pixels; a narrower page scrolls sideways.
        chooser: field of the state whose list stands beside the title; "" for none.
    """

    kind = "figure"

    def __init__(
        self,
        *,
        selects: Mapping[str, str] | None = None,
        to_steps: bool = False,
        height: int = 360,
        min_plot_width: int = 0,
        chooser: str = "",
        **kwargs,
    ):
        selects = dict(selects or {})
        role = fill_template(CHOOSING, keys=translate(KEYS)) if selects.keys() & {"x", "y"} else GROUP
        html = (
            f'<span class="holder" data-holds="{escape_text(chooser)}"></span>'
            * bool(chooser)
            + f'<div class="plot" {role} data-selects="{json_attribute(selects)}" '
            f"{'data-to-steps ' * to_steps}"
            f'style="height:{height}px;min-width:{min_plot_width}px" tabindex="0"></div>{EVIDENCE}'
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(figure: go.Figure) -> list[str]:
        """Return the data and the layout as JSON, without a template: the page has one for each theme.

        They are separate, so that the browser sees if the data are the same and only the markers have changed.
        """
        content = encode_large_heatmap(figure).to_plotly_json()
        return [to_json_plotly(content["data"]), to_json_plotly(content["layout"])]


MAX_PIXELS = 96  # a side of an image
MAX_BYTES = 960_000  # of all images as text: a little less than a megabyte with all that is said of them


class HeadGridWidget(HtmlWidget):
    """A grid with a row per layer and a column per head; a click selects the head and the cell under the pointer.

    Args:
        selects: "layer", "head", "x" or "y" of a clicked cell -> the field of the state it sets.
    """

    kind = "head_grid"

    def __init__(self, *, selects: Mapping[str, str], **kwargs):
        html = (
            f'<div class="grid" role="group" data-selects="{json_attribute(dict(selects))}"></div>'
            '<output class="readout" aria-live="off"></output>' + EVIDENCE
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(multiples: HeadHeatmaps) -> dict[str, Any]:
        """Return the heatmaps as bytes, 0 to 255 for 0 to 1, or for -1 to 1 if they are signed.

        Above `MAX_PIXELS` tokens, or fewer if there are many heads, a pixel is the maximum of several cells, or, if
        they are signed, the value furthest from 0. All together take at most `MAX_BYTES`. A head's rows are padded
        to a multiple of 4 bytes, as in a bitmap file (static/plotly_figures.js).
        """
        layers, heads, tokens, _num_keys = multiples.values.shape
        block = -(-tokens // max_side_pixels(layers * heads))
        sheets = [layer_pixels(values, block, multiples.signed) for values in multiples.values]
        return {
            "layers": layers,
            "heads": heads,
            "tokens": tokens,
            "block": block,
            "pixels": -(-tokens // block),
            "data": [base64.b64encode(head).decode() for heads_of_layer in sheets for head in heads_of_layer],
            "alt": multiples.alt,
            "signed": multiples.signed,
        }


def layer_pixels(values: np.ndarray, block: int, signed: bool) -> np.ndarray:
    """Return a layer's heads (H, T, T) as pixels, bytes (H, n, n padded to a multiple of 4)."""
    pixels = max_pool(values, block)
    if signed:
        lowest = -max_pool(-values, block)
        pixels = (np.where(pixels >= -lowest, pixels, lowest) + 1) / 2
    return np.pad(np.rint(pixels * 255).astype(np.uint8), [(0, 0), (0, 0), (0, -pixels.shape[-1] % 4)])


def max_side_pixels(count: int) -> int:
    """Return the largest side length of `count` heatmaps that fit into `MAX_BYTES` as quoted base64."""
    sides = range(MAX_PIXELS, 1, -1)
    return next((n for n in sides if count * (-(-n * (n + -n % 4) // 3) * 4 + 4) <= MAX_BYTES), 1)


def max_pool(values: np.ndarray, block: int) -> np.ndarray:
    """Return the maximum of every block × block square of the last two axes; the last squares may be smaller."""
    if block == 1:
        return values
    starts = np.arange(0, values.shape[-1], block)
    return np.maximum.reduceat(np.maximum.reduceat(values, starts, axis=-1), starts, axis=-2)


DECIMALS = 6  # of a table's numbers, of which the page writes three


class HeadTableWidget(HtmlWidget):
    """A `HeadTable` that is sorted by a press on a heading; a click on a row selects the head.

    Args:
        selects: "layer" or "head" of a clicked row -> the field of the state it sets.
    """

    kind = "head_table"

    def __init__(self, *, selects: Mapping[str, str], **kwargs):
        html = f'<div class="scores" data-selects="{json_attribute(dict(selects))}"></div>{EVIDENCE}'
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(table: HeadTable) -> dict[str, Any]:
        """Return the columns as JSON: numbers in the order of layers and heads, None for those that are not finite."""
        return {
            "heads": table.columns[0].values.shape[1],
            "alt": table.alt,
            "note": table.note,
            "columns": [
                {
                    "label": column.label,
                    "description": column.description,
                    "limit": column.limit,
                    "signed": column.signed,
                    "values": [
                        round(value, DECIMALS) if math.isfinite(value) else None
                        for value in column.values.ravel().tolist()
                    ],
                }
                for column in table.columns
            ],
        }


class ModelMapWidget(HtmlWidget):
    """Draws a `ModelMap` as SVG; every part of it is a button for the pointer and for the keyboard.

    Args:
        height, min_width: of the wide arrangement in pixels, at its smallest: it grows with the page, and scrolls
            sideways in a narrower one. The narrow page's arrangement takes the width there is.
    """

    kind = "model_map"
    script = "model_map"

    def __init__(self, *, height: int, min_width: int, **kwargs):
        style = f"--min-width:{min_width}px;--ratio:{min_width}/{height}"
        html = f'<div class="map"><div class="sheet" style="{style}"></div></div>'
        super().__init__(html=f'{html}<div class="told" popover="manual"></div>{EVIDENCE}', **kwargs)

    @staticmethod
    def pack(diagram: ModelMap) -> dict[str, Any]:
        """Return the diagram as JSON; parts, lines, labels and the legend are lists in the order of their fields."""
        return {
            "alt": diagram.alt,
            "largest": diagram.largest,
            "parts": [
                [
                    part.kind,
                    [*map(round_coordinates, part.boxes)],
                    part.hover_text,
                    part.selects,
                    part_value(part),
                    part.label,
                ]
                for part in diagram.parts
            ],
            "sheets": [
                {
                    "size": round_coordinates(sheet.size),
                    "lines": [
                        [line.kind, round_coordinates(line.corners), round(line.width, 2), line.arrow]
                        for line in sheet.lines
                    ],
                    "words": [
                        [*round_coordinates((word.x, word.y)), word.text, word.kind, word.side] for word in sheet.labels
                    ],
                    "written": list(sheet.labelled_kinds),
                    "legend": [[kind, round_coordinates(box)] for kind, box in sheet.legend],
                    "scale": round_coordinates(sheet.scale),
                }
                for sheet in diagram.sheets
            ],
        }


def part_value(part: MapPart) -> float | None:
    """Return a part's value as JSON has it."""
    return None if part.value is None else float(part.value)


def round_coordinates(numbers: Iterable[float]) -> list[float]:
    """Round coordinates to a hundredth of a pixel; whole numbers become integers."""
    rounded = (round(number, 2) for number in numbers)
    return [int(number) if number == int(number) else number for number in rounded]


WHOLE_MODEL_HTML = """<div class="whole">
<div class="line"><nav class="path" aria-label="{path}"></nav><div class="acts">%s</div>
<output class="readout" aria-live="off"></output></div>
<div class="drawing"></div>
<p class="sum"></p>
</div>"""


class WholeModelWidget(HtmlWidget):
    """Draws a `WholeModelFigure` as SVG; each part is a button that opens it in place.

    What is open is the selection's `open`. The parts of the logit stand below the drawing as a sum.
    """

    kind = "whole_model"
    script = "whole_model"

    def __init__(self, **kwargs):
        walk = WalkthroughButton("attention", elem_id="overview-walk").markup
        html = fill_template(WHOLE_MODEL_HTML, path=_("what is open")) % walk
        super().__init__(html=html + EVIDENCE, **kwargs)

    @staticmethod
    def pack(whole_model: WholeModelFigure) -> dict[str, Any]:
        """Return the figure as JSON."""
        return asdict(whole_model)
