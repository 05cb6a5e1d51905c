"""The text so far."""

from explorer.web.widgets.widget import Widget


class Story(Widget):
    """The end of the prompt and all that was generated, as running text: {"prompt": str, "generated": str}."""

    def __init__(self, **kwargs):
        html = '<div class="story" dir="auto"><span class="prompt"></span><span class="generated"></span></div>'
        super().__init__(html=html, **kwargs)
