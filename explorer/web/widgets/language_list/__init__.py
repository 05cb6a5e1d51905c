"""Choosing the language."""

from explorer.language import LANGUAGES, _
from explorer.web.widgets.widget import Widget, as_text, with_words


class LanguageList(Widget):
    """A list of languages, each in its own words; another one has the page come anew, as its address then says,
    and is remembered."""

    def __init__(self, **kwargs):
        options = "".join(
            f'<option value="{tag}" lang="{tag}">{as_text(name)}</option>' for tag, name in LANGUAGES.items()
        )
        begins = with_words('<select class="language" aria-label="{language}">', language=_("language"))
        super().__init__(html=f"{begins}{options}</select>", **kwargs)
