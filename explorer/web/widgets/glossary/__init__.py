"""Glossary of the page's terms, and the word forms by which the page recognises them."""

from explorer.lessons.glossary import ENTRIES, entry_names_by_form
from explorer.translations import _, translate
from explorer.web.widgets.widget import Widget, escape_text, fill_template, json_attribute


class Glossary(Widget):
    """A list of terms that opens on request.

    Its script explains each term wherever it is on the page (static/terms.js).
    """

    def __init__(self, **kwargs):
        meaning_by_forms = {
            ", ".join(dict.fromkeys(map(translate, entry.forms))): translate(entry.meaning) for entry in ENTRIES
        }
        rows = "".join(
            f"<dt>{escape_text(word)}</dt><dd>{escape_text(meaning)}</dd>" for word, meaning in meaning_by_forms.items()
        )
        meanings = {entry.name: translate(entry.meaning) for entry in ENTRIES}
        begins = fill_template("<details><summary>{asked}</summary>", asked=_("What do the words mean?"))
        super().__init__(
            html=f'{begins}<dl data-known="{json_attribute([entry_names_by_form(), meanings])}">{rows}</dl></details>',
            **kwargs,
        )
