"""What the words mean, for those who ask for all of them; and the forms by which the page knows them."""

from explorer.language import _, look_up
from explorer.lessons.glossary import ENTRIES, forms
from explorer.web.widgets.widget import Widget, as_text, attribute, with_words


class Glossary(Widget):
    """A list that opens. Its script has each of the words explained wherever the page says it (static/terms.js)."""

    def __init__(self, **kwargs):
        written = {", ".join(dict.fromkeys(map(look_up, entry.forms))): look_up(entry.meaning) for entry in ENTRIES}
        rows = "".join(f"<dt>{as_text(word)}</dt><dd>{as_text(meaning)}</dd>" for word, meaning in written.items())
        meanings = {entry.name: look_up(entry.meaning) for entry in ENTRIES}
        begins = with_words("<details><summary>{asked}</summary>", asked=_("What do the words mean?"))
        super().__init__(
            html=f'{begins}<dl data-known="{attribute([forms(), meanings])}">{rows}</dl></details>', **kwargs
        )
