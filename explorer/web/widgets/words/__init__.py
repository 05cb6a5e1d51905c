"""Plain text."""

from explorer.web.widgets.widget import Widget


class Words(Widget):
    """Shows its value as it is: no markup is read in it. `kind` "prose" or "formula" sets the type."""

    def __init__(self, value: str = "", *, kind: str = "prose", **kwargs):
        super().__init__(value, html=f'<div class="{kind}"></div>', **kwargs)
