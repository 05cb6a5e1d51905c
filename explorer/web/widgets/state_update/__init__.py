"""Python's way to change the page's state."""

from collections.abc import Mapping
from typing import Any

from explorer.state.page_state import PageState
from explorer.web.widgets.widget import Widget


class StateUpdate(Widget):
    """Its value is merged into the state, without an event, so that a late answer never undoes a click."""

    def __init__(self, **kwargs):
        super().__init__({}, html="<i hidden></i>", **kwargs)

    @staticmethod
    def pack(asked: PageState, change: Mapping[str, Any] | None = None, ask: str = "show") -> dict[str, Any]:
        """The change of the page's state to a run, and what the browser then asks for (see `Endpoints.answer`).

        Of the selection only the tokens, and what is in `change`: the rest may have been changed since by clicks.
        """
        tokens = {"query": asked.selection.query, "key": asked.selection.key}
        return {
            "change": asked.run.as_dict()
            | asked.other_as_dict()
            | asked.tree_as_dict()
            | tokens
            | {"turn": asked.turn}
            | (change or {}),
            "ask": ask,
        }
