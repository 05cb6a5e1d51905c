"""Button that expands parts of the page on small screens."""

from explorer.web.widgets.widget import Widget, fill_template


class CollapseButton(Widget):
    """A button, on small screens only, that expands and collapses the parts of the page listed in page.css.

    Args:
        text: of the button.
        name: label for screen readers in place of a sign.
    """

    def __init__(self, *, text: str = "", name: str = "", **kwargs):
        label = 'aria-label="{name}"' if name else ""
        html = f'<button type="button" class="fold" aria-expanded="false" {label}>{{text}}</button>'
        super().__init__(html=fill_template(html, text=text, name=name), **kwargs)
