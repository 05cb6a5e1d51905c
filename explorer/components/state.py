"""The page's state, in the browser."""

from explorer.components.widget import Widget


class State(Widget):
    """What the person is looking at: the run, the selection and the settings, as one object.

    The browser alone writes it, and every event of the page takes it as input. Emits "tune" when a setting of the
    generation has changed.
    """

    def __init__(self, **kwargs):
        super().__init__({}, html="<i hidden></i>", **kwargs)
