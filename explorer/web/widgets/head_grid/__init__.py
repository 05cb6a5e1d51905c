"""Every head of every layer as a small picture."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from explorer.views.view import SmallMultiples
from explorer.web.widgets.widget import EVIDENCE, Widget, attribute

MOST_PIXELS = 96


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
        """The pictures as bytes, 0 to 255 for 0 to 1, or of signed ones for −1 to 1; above 96 tokens a pixel is the
        largest of several cells, or of signed ones that which is furthest from 0. A head's rows are filled up to a
        multiple of 4 bytes, as in a bitmap file (static/bitmap.js)."""
        layers, heads, tokens, _ = pictures.values.shape
        block = -(-tokens // MOST_PIXELS)
        pixels = pool(pictures.values, block)
        if pictures.signed:
            least = -pool(-pictures.values, block)
            pixels = (np.where(pixels >= -least, pixels, least) + 1) / 2
        filled = np.pad(np.rint(pixels * 255).astype(np.uint8), [(0, 0)] * 3 + [(0, -pixels.shape[-1] % 4)])
        return {
            "layers": layers,
            "heads": heads,
            "tokens": tokens,
            "block": block,
            "pixels": pixels.shape[-1],
            "data": [base64.b64encode(head).decode() for row in filled for head in row],
            "alt": pictures.alt,
            "signed": pictures.signed,
        }


def pool(values: np.ndarray, block: int) -> np.ndarray:
    """The largest value of every block × block square of the last two axes, the last squares being cut short."""
    if block == 1:
        return values
    starts = np.arange(0, values.shape[-1], block)
    return np.maximum.reduceat(np.maximum.reduceat(values, starts, axis=-1), starts, axis=-2)
