"""Grid of small heatmaps, one per head and layer."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from explorer.views.view import SmallMultiples
from explorer.web.widgets.widget import EVIDENCE, Widget, json_attribute

MAX_PIXELS = 96  # a side of a picture
MAX_BYTES = 960_000  # of all pictures as text: a little less than a megabyte with all that is said of them


class HeadGrid(Widget):
    """A grid with a row per layer and a column per head; a click selects the head and the cell under the pointer.

    Args:
        selects: "layer", "head", "x" or "y" of a clicked cell -> the field of the state it sets.
    """

    def __init__(self, *, selects: Mapping[str, str], **kwargs):
        html = (
            f'<div class="grid" role="group" data-selects="{json_attribute(dict(selects))}"></div>'
            '<output class="readout" aria-live="off"></output>' + EVIDENCE
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(multiples: SmallMultiples) -> dict[str, Any]:
        """Return the heatmaps as bytes, 0 to 255 for 0 to 1, or for -1 to 1 if they are signed.

        Above `MAX_PIXELS` tokens, or fewer if there are many heads, a pixel is the maximum of several cells, or, if
        they are signed, the value furthest from 0. All together take at most `MAX_BYTES`. A head's rows are padded
        to a multiple of 4 bytes, as in a bitmap file (static/bitmap.js).
        """
        layers, heads, tokens, _ = multiples.values.shape
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
