"""The page's state, in the browser."""

from collections.abc import Callable, Sequence

from explorer.web.widgets.widget import Widget


class State(Widget):
    """What the person is looking at: the run, the selection and the settings, as one object.

    The browser alone writes it, and asks Python about it. Emits "open" when it names another tab than is open,
    "follow" when all of Gradio's own widgets are to show another state, "move" when it has a `move`: what another run
    is to be made of this one, and "halt" when what is being written is to end.

    Args:
        functions: what the browser asks.
    """

    EMITS = ("open", "follow", "move", "halt")

    def __init__(self, functions: Sequence[Callable], **kwargs):
        super().__init__({}, html="<i hidden></i>", server_functions=functions, **kwargs)
