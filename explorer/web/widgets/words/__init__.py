"""Plain text."""

from explorer.web.widgets.widget import Widget, escape_text


class TextBlock(Widget):
    """Shows its content as plain text, without markup.

    Args:
        text: shown at first.
        kind: "prose" or "formula", which sets the font.
        summary: of a formula that is shown on demand.
    """

    def __init__(self, text: str = "", *, kind: str = "prose", summary: str = "", **kwargs):
        html = f'<div class="{kind}">{escape_text(text)}</div>'
        if summary:
            html = f'<details class="on-demand"><summary>{escape_text(summary)}</summary>{html}</details>'
        super().__init__(html=html, **kwargs)
