"""Controls of interventions."""

from collections.abc import Sequence
from typing import Any

from explorer.state.interventions import Scale
from explorer.views.intervention_control import InterventionControl
from explorer.web.widgets.widget import Widget


class InterventionControls(Widget):
    """A slider, switch or list of scopes for each intervention; it writes the state's and follows them."""

    def __init__(self, **kwargs):
        super().__init__(html='<div class="what-ifs"></div>', **kwargs)

    @staticmethod
    def pack(controls: Sequence[tuple[InterventionControl, float]]) -> list[dict[str, Any]]:
        """Return the widget's value; texts of interventions are paired with prefixes of those they replace.

        Args:
            controls: the available controls with their current amounts.
        """
        return [
            {
                "title": control.title,
                "edit": control.texts()[0],
                "everywhere": [*control.texts()],
                "here": [*control.texts(here=True)] if control.here else None,
                "switch": control.is_switch,
                "scopes": [
                    [scope.title, text] for scope, text in zip(control.scopes, control.scope_texts(), strict=True)
                ],
                "log": control.log,
                "minimum": control.slider_position(control.minimum),
                "maximum": control.slider_position(control.maximum),
                "step": control.step,
                "silences": control.kind is Scale,
                "default": control.default,
                "amount": amount,
                "amountHere": control.amount_here,
            }
            for control, amount in controls
        ]
