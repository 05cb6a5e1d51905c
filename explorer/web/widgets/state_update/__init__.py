"""Updates of the page's state while text is generated."""

from explorer.web.widgets.widget import Widget


class StateUpdate(Widget):
    """A value that is merged into the page's state, without an event, so that a late one never undoes a click."""

    def __init__(self, **kwargs):
        super().__init__({}, html="<i hidden></i>", **kwargs)
