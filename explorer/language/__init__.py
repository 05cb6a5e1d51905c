"""In which words it is said: every sentence stands in English where it is used, marked by `_` or `ngettext`, and is
looked up in the catalogue of the process's language, `LANGUAGE/LC_MESSAGES/explorer.mo` beside this file.

The language is the process's, as its environment has it (LANGUAGE, LC_ALL, LC_MESSAGES, LANG). Where there is no
catalogue of it, all is English. What a module keeps is marked by `N_` and looked up when it is said.
"""

import gettext
from pathlib import Path
from typing import Any

CATALOGUES = Path(__file__).parent
COUNTS = 200  # from 100 on the last two digits of a count choose its form, in all languages but Breton (its millions)

_catalogue = gettext.translation("explorer", CATALOGUES, fallback=True)


def _(message: str, /, **values: Any) -> str:
    """The message in the process's language, with values in the place of their names.

    Values go in as they are: nothing in them is looked up or put in place of a name.

    Args:
        message: a whole sentence, as a literal, with names in braces as `str.format` has them; without values it is
            left as it is looked up, a template that may be formatted later.
    """
    return look_up(message, **values)


def N_(message: str) -> str:
    """The message as it is: a literal that `look_up` finds later."""
    return message


def look_up(message: str, **values: Any) -> str:
    """What `_` answers to a message that was marked by `N_`."""
    found = _catalogue.gettext(message)
    return found.format(**values) if values else found


def ngettext(singular: str, plural: str, count: int, **values: Any) -> str:
    """The same of a sentence that a number of things changes; `{count}` is that number."""
    return _catalogue.ngettext(singular, plural, count).format(count=count, **values)


def for_script() -> dict[str, Any]:
    """The catalogue, for the page's script to look messages up in; {} in English.

    Returns:
        message -> the same in the language, or of a singular the list of its plural forms; and "" -> the index of the
        form that each count from 0 to 199 takes; a larger one takes that of 100 + its last two digits.
    """
    if not isinstance(_catalogue, gettext.GNUTranslations):
        return {}
    messages: dict[str, Any] = {"": [_catalogue.plural(count) for count in range(COUNTS)]}
    for message, translation in _catalogue._catalog.items():
        if isinstance(message, tuple):  # a singular, and the number of one of its plural forms: in their order
            messages.setdefault(message[0], []).append(translation)
        elif message:
            messages[message] = translation
    return messages
