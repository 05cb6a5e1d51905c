"""Changing the run and seeing what follows."""

from collections.abc import Sequence
from typing import Any

from explorer.state.interventions import Scale
from explorer.views.what_if import WhatIf
from explorer.web.widgets.widget import Widget


class WhatIfs(Widget):
    """A slider a change, or where it has no amount a switch or a list of how much of the model it holds for; it writes
    the state's edits and follows them."""

    def __init__(self, **kwargs):
        super().__init__(html='<div class="what-ifs"></div>', **kwargs)

    @staticmethod
    def pack(offered: Sequence[tuple[WhatIf, float]]) -> list[dict[str, Any]]:
        """The widget's value; texts of edits are with what those begin with whose place they take.

        Args:
            offered: what can be changed, and by how much it is.
        """
        return [
            {
                "title": what_if.title,
                "edit": what_if.texts()[0],
                "everywhere": [*what_if.texts()],
                "here": [*what_if.texts(here=True)] if what_if.here else None,
                "switch": what_if.is_switch,
                "scopes": [
                    [scope.title, text] for scope, text in zip(what_if.scopes, what_if.texts_of_scopes(), strict=True)
                ],
                "log": what_if.log,
                "minimum": what_if.place(what_if.minimum),
                "maximum": what_if.place(what_if.maximum),
                "step": what_if.step,
                "silences": what_if.kind is Scale,
                "default": what_if.default,
                "amount": amount,
                "amountHere": what_if.amount_here,
            }
            for what_if, amount in offered
        ]
