"""In which words it is said: every sentence stands in English where it is used, marked by `_` or `ngettext`, and is
looked up in the catalogue of the visitor's language, `LANGUAGE/LC_MESSAGES/explorer.mo` beside this file.

What is said within `speaking(language)` is said in that language, by this thread or task alone; elsewhere in English.
What a module keeps is marked by `N_` and looked up when it is said.
"""

import gettext
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

CATALOGUES = Path(__file__).parent
ENGLISH = "en"
LANGUAGES = {ENGLISH: "English", "zh-CN": "简体中文"}  # BCP 47 tag -> what it calls itself
COUNTS = 200  # from 100 on the last two digits of a count choose its form, in all languages but Breton (its millions)

_spoken = ContextVar("language", default=ENGLISH)


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """All that is said in this context is said in the language, one of `LANGUAGES`."""
    before = _spoken.set(language)
    try:
        yield
    finally:
        _spoken.reset(before)


def spoken() -> str:
    """The language that is spoken here."""
    return _spoken.get()


def understood(*wanted: Any) -> str:
    """The first of some languages that is one of `LANGUAGES`, or is like one but for where it is spoken; or English.

    Args:
        wanted: BCP 47 tags, the best first; anything, as anybody may send it.
    """
    for tag in wanted:
        tag = tag.lower() if isinstance(tag, str) else ""
        for same in (lambda a, b: a == b, lambda a, b: a.partition("-")[0] == b.partition("-")[0]):
            if language := next((known for known in LANGUAGES if same(known.lower(), tag)), None):
                return language
    return ENGLISH


def _(message: str, /, **values: Any) -> str:
    """The message in the visitor's language, with values in the place of their names.

    Values go in as they are: nothing in them is looked up or put in place of a name.

    Args:
        message: a whole sentence, as a literal, with names in braces as `str.format` has them; without values it is
            left as it is looked up, a template that may be formatted later.
    """
    return look_up(message, **values)


def N_(message: str) -> str:
    """The message as it is: a literal that `look_up` finds later."""
    return message


def look_up(message: str, /, **values: Any) -> str:
    """What `_` answers to a message that was marked by `N_`."""
    found = _catalogue(spoken()).gettext(message) if message else ""  # "" is what catalogues keep their own facts under
    return found.format(**values) if values else found


def ngettext(singular: str, plural: str, count: int, **values: Any) -> str:
    """The same of a sentence that a number of things changes; `{count}` is that number."""
    return _catalogue(spoken()).ngettext(singular, plural, count).format(count=count, **values)


@cache
def _catalogue(language: str) -> gettext.NullTranslations:
    return gettext.translation("explorer", CATALOGUES, [language.replace("-", "_")], fallback=language == ENGLISH)


def for_script(language: str) -> dict[str, Any]:
    """The catalogue of a language, for the page's script to look messages up in; {} for English.

    Returns:
        message -> the same in the language, or of a singular the list of its plural forms; and "" -> the index of the
        form that each count from 0 to 199 takes; a larger one takes that of 100 + its last two digits.
    """
    catalogue = _catalogue(language)
    if not isinstance(catalogue, gettext.GNUTranslations):
        return {}
    messages: dict[str, Any] = {"": [catalogue.plural(count) for count in range(COUNTS)]}
    for message, translation in catalogue._catalog.items():
        if isinstance(message, tuple):  # a singular, and the number of one of its plural forms: in their order
            messages.setdefault(message[0], []).append(translation)
        elif message:
            messages[message] = translation
    return messages
