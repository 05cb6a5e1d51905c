"""A Plotly figure."""

from collections.abc import Mapping

from plotly.io.json import to_json_plotly

from explorer.translations import N_, translate
from explorer.views import graph_objects as go
from explorer.web.widgets.figure.heatmap_encoding import encode_large_heatmap
from explorer.web.widgets.widget import EVIDENCE, Widget, fill_template, json_attribute

# a role that may hold what is clicked, and one that lets the arrow keys through where they choose
GROUP = 'role="group"'
CHOOSING = 'role="application" aria-description="{keys}"'
KEYS = N_("Arrow keys move the selection, Enter tells how the selected number comes about.")


class Figure(Widget):
    """A Plotly figure that keeps its zoom when redrawn, follows the page's theme, and turns clicks into selections.

    Args:
        selects: "x", "y" or "customdata" of a clicked point -> the field of the state it sets.
        to_steps: whether "customdata" of its points names the training step that a click selects.
        height, min_plot_width: pixels; a narrower page scrolls sideways.
    """

    def __init__(
        self,
        *,
        selects: Mapping[str, str] | None = None,
        to_steps: bool = False,
        height: int = 360,
        min_plot_width: int = 0,
        **kwargs,
    ):
        selects = dict(selects or {})
        role = fill_template(CHOOSING, keys=translate(KEYS)) if selects.keys() & {"x", "y"} else GROUP
        html = (
            f'<div class="plot" {role} data-selects="{json_attribute(selects)}" '
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
