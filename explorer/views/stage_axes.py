"""Axes of the residual stream's stages and of sublayers."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.residual import ResidualStage
from explorer.translations import _


def click_layers(stages: Sequence[ResidualStage], columns: int) -> np.ndarray:
    """Return the layer that a click on each cell of a heatmap of stages selects, (S, columns)."""
    return np.repeat([[stage.layer] for stage in stages], columns, axis=1)


def stage_axis(stages: Sequence[ResidualStage], max_labels: int = 40) -> dict:
    """Return the settings of an axis of stages, the embedding first, with at most about `max_labels` labels."""
    names = [stage.name for stage in stages]
    return {
        "type": "category",
        "tickvals": names[:: -(-len(names) // max_labels)],
        "title": {"text": _("stage: after layer and sublayer")},
        "showgrid": False,
        "autorange": "reversed",
    }


def sublayer_axis(names: Sequence[str]) -> dict:
    """Return the settings of an axis of bars, one for each sublayer, with a legend of their colours."""
    return {
        "title": {"text": _("layer and sublayer<br>(blue: attention adds, orange: feed-forward adds)")},
        "tickvals": np.arange(len(names)),
        "ticktext": names,
        "tickangle": -45,
        "showgrid": False,
    }
