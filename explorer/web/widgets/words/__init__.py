"""A block of plain text."""

from explorer.web.widgets.widget import Widget


class TextBlock(Widget):
    """Shows its value as plain text, without markup; `kind` "prose" or "formula" sets the font."""

    def __init__(self, value: str = "", *, kind: str = "prose", **kwargs):
        super().__init__(value, html=f'<div class="{kind}"></div>', **kwargs)
