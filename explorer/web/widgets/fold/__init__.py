"""What a telephone shows of the page only when asked for."""

from explorer.web.widgets.widget import Widget, with_words


class Fold(Widget):
    """A button, on telephones alone, that opens parts of the page and folds them up again: which, page.css says.

    Args:
        words: on the button.
        name: what a screen reader says in place of a sign.
    """

    def __init__(self, *, words: str = "", name: str = "", **kwargs):
        label = 'aria-label="{name}"' if name else ""
        html = f'<button type="button" class="fold" aria-expanded="false" {label}>{{words}}</button>'
        super().__init__(html=with_words(html, words=words, name=name), **kwargs)
