"""The generated text."""

from explorer.web.widgets.widget import Widget


class GeneratedText(Widget):
    """The end of the prompt and the generated text: {"prompt": str, "generated": str}."""

    def __init__(self, **kwargs):
        html = '<div class="story" dir="auto"><span class="prompt"></span><span class="generated"></span></div>'
        super().__init__(html=html, **kwargs)
