"""Search: the button that opens it, loaded once it is used."""

from explorer.translations import _
from explorer.web.widgets.html_widget import Widget, fill_template


class SearchButton(Widget):
    """A button that opens the search, which finds what is on the page and goes there.

    The same module has the list of keys.
    """

    kind = "search_button"
    lazy = ""

    def __init__(self, **kwargs):
        html = fill_template(
            '<button type="button" class="open" aria-haspopup="dialog" aria-keyshortcuts="Control+K Meta+K /">'
            '<span class="words">{search}</span> <kbd>Ctrl K</kbd></button>',
            search=_("Search or jump"),
        )
        super().__init__(html=html, **kwargs)
