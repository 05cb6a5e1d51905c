"""List of the page's languages."""

from explorer.translations import LANGUAGES, _
from explorer.web.widgets.widget import Widget, escape_text, fill_template


class LanguageList(Widget):
    """A list of languages, each in its own name; choosing another one reloads the page in it and stores the choice."""

    def __init__(self, **kwargs):
        options = "".join(
            f'<option value="{tag}" lang="{tag}">{escape_text(name)}</option>' for tag, name in LANGUAGES.items()
        )
        begins = fill_template('<select class="language" aria-label="{language}">', language=_("language"))
        super().__init__(html=f"{begins}{options}</select>", **kwargs)
