"""Python's way to change the page's state."""

from explorer.web.widgets.widget import Widget


class StateUpdate(Widget):
    """Its value is merged into the state, without an event, so that a late answer never undoes a click."""

    def __init__(self, **kwargs):
        super().__init__({}, html="<i hidden></i>", **kwargs)
