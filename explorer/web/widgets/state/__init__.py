"""The page's state, in the browser."""

from collections.abc import Callable, Sequence

from explorer.web.widgets.widget import Widget


class State(Widget):
    """The page's state: the run, the selection and the settings, as one object.

    Only the browser writes it, and sends it with its requests. Emits "open" when it names another tab than the open
    one, "follow" when Gradio's own widgets must show another state, "move" when it has a command in `move`, and
    "halt" to stop the generation.

    Args:
        functions: server functions for the browser.
    """

    EMITS = ("open", "follow", "move", "halt")

    def __init__(self, functions: Sequence[Callable], **kwargs):
        super().__init__({}, html="<i hidden></i>", server_functions=functions, **kwargs)
