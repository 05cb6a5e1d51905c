"""Axes of the stream's stages and of the sublayers between them."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.residual import Stage
from explorer.language import _


def layers_of(places: Sequence[Stage], columns: int) -> np.ndarray:
    """(S, columns), the layer that a click on a row of stages chooses."""
    return np.repeat([[stage.layer] for stage in places], columns, axis=1)


def stage_axis(places: Sequence[Stage], most: int = 40) -> dict:
    """Settings of an axis of stages, the embedding first; of many, some are written."""
    names = [stage.name for stage in places]
    return {
        "type": "category",
        "tickvals": names[:: -(-len(names) // most)],
        "title": {"text": _("stage: after layer and sublayer")},
        "showgrid": False,
        "autorange": "reversed",
    }


def sublayer_axis(names: Sequence[str]) -> dict:
    """Settings of an axis of bars, one a sublayer, whose colours it explains."""
    return {
        "title": {"text": _("layer and sublayer<br>(blue: attention adds, orange: feed-forward adds)")},
        "tickvals": np.arange(len(names)),
        "ticktext": names,
        "tickangle": -45,
        "showgrid": False,
    }
