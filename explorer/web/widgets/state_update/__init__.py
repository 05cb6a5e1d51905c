"""Updates of the page's state by Python."""

from collections.abc import Mapping
from typing import Any

from explorer.state.page_state import PageState
from explorer.web.widgets.widget import Widget


class StateUpdate(Widget):
    """A value that is merged into the page's state, without an event, so that a late response never undoes a click."""

    def __init__(self, **kwargs):
        super().__init__({}, html="<i hidden></i>", **kwargs)

    @staticmethod
    def pack(page_state: PageState, change: Mapping[str, Any] | None = None, ask: str = "show") -> dict[str, Any]:
        """Return the change of the state to a run, and the scope to request next (see `Endpoints.answer`).

        Only the tokens of the selection are included, and `change`: clicks may have changed the others since.
        """
        tokens = {"query": page_state.selection.query, "key": page_state.selection.key}
        return {
            "change": page_state.run.as_dict()
            | page_state.other_as_dict()
            | page_state.tree_as_dict()
            | tokens
            | {"turn": page_state.turn}
            | (change or {}),
            "ask": ask,
        }
