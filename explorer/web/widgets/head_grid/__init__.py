"""Every head of every layer as a small picture."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from explorer.views.view import SmallMultiples
from explorer.web.widgets.widget import EVIDENCE, Widget, attribute

MOST_PIXELS = 96  # a side of a picture
MOST_BYTES = 960_000  # of all pictures as text: a little less than a megabyte with all that is said of them


class HeadGrid(Widget):
    """A row a layer, a column a head; a click chooses the head and the cell under the pointer.

    Args:
        selects: "layer", "head", "x" or "y" of a clicked cell -> the field of the state it sets.
    """

    def __init__(self, *, selects: Mapping[str, str], **kwargs):
        html = (
            f'<div class="grid" role="group" data-selects="{attribute(dict(selects))}"></div>'
            '<output class="readout" aria-live="off"></output>' + EVIDENCE
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(pictures: SmallMultiples) -> dict[str, Any]:
        """The pictures as bytes, 0 to 255 for 0 to 1, or of signed ones for −1 to 1; above 96 tokens, and above fewer
        where there are many heads, a pixel is the largest of several cells, or of signed ones that which is furthest
        from 0. All together take no more than `MOST_BYTES`. A head's rows are filled up to a multiple of 4 bytes, as in
        a bitmap file (static/bitmap.js)."""
        layers, heads, tokens, _ = pictures.values.shape
        block = -(-tokens // most_pixels(layers * heads))
        sheets = [sheet(values, block, pictures.signed) for values in pictures.values]
        return {
            "layers": layers,
            "heads": heads,
            "tokens": tokens,
            "block": block,
            "pixels": -(-tokens // block),
            "data": [base64.b64encode(head).decode() for heads_of_layer in sheets for head in heads_of_layer],
            "alt": pictures.alt,
            "signed": pictures.signed,
        }


def sheet(values: np.ndarray, block: int, signed: bool) -> np.ndarray:
    """A layer's heads (H, T, T) as pixels, bytes (H, n, n filled up)."""
    pixels = pool(values, block)
    if signed:
        least = -pool(-values, block)
        pixels = (np.where(pixels >= -least, pixels, least) + 1) / 2
    return np.pad(np.rint(pixels * 255).astype(np.uint8), [(0, 0), (0, 0), (0, -pixels.shape[-1] % 4)])


def most_pixels(count: int) -> int:
    """The largest side that so many pictures can have, each as base64 of its own within quotation marks."""
    sides = range(MOST_PIXELS, 1, -1)
    return next((n for n in sides if count * (-(-n * (n + -n % 4) // 3) * 4 + 4) <= MOST_BYTES), 1)


def pool(values: np.ndarray, block: int) -> np.ndarray:
    """The largest value of every block × block square of the last two axes, the last squares being cut short."""
    if block == 1:
        return values
    starts = np.arange(0, values.shape[-1], block)
    return np.maximum.reduceat(np.maximum.reduceat(values, starts, axis=-1), starts, axis=-2)
