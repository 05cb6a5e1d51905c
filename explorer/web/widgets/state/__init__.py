"""The page's state, in the browser."""

from explorer.web.widgets.widget import Widget


class State(Widget):
    """The page's state: the run, the selection and the settings, as one object.

    Only the browser writes it, and sends it with what it asks. Emits "open" when it names another tab than the open
    one, "sync" when Gradio's own controls must follow it, "halt" to stop the generation, and "wake" to have Gradio
    open its stream of answers.
    """

    EMITS = ("open", "sync", "halt", "wake")

    def __init__(self, **kwargs):
        super().__init__({}, html="<i hidden></i>", **kwargs)
