"""Asks Python for one view."""

from explorer.components.widget import Widget, attribute


class Asker(Widget):
    """Emits "show" when its view is to be drawn whole, "pick" when the selection has changed while it is open.

    A view each, because Gradio updates every output of an event whether or not it changed: only the open view's are.
    """

    def __init__(self, view: str, **kwargs):
        super().__init__(html=f'<i hidden data-view="{attribute(view)}"></i>', **kwargs)
