"""Translations of user-facing text.

Messages are written in English where they are used, marked by `_` or `ngettext`, and looked up in the catalogue of
the user's language, `LANGUAGE/LC_MESSAGES/explorer.mo` in this folder.

Within `use_locale(language)` text is translated to the language, for this thread or task only; elsewhere it is
English. Texts in module constants are marked by `N_` and translated when they are used.
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
LANGUAGES = {ENGLISH: "English", "es": "Español", "zh-CN": "简体中文"}  # BCP 47 tag -> what it calls itself
COUNTS = 200  # from 100 on the last two digits of a count choose its form, in all languages but Breton (its millions)

_locale = ContextVar("language", default=ENGLISH)


@contextmanager
def use_locale(language: str) -> Iterator[None]:
    """Set the language of this context, one of `LANGUAGES`."""
    before = _locale.set(language)
    try:
        yield
    finally:
        _locale.reset(before)


def current_locale() -> str:
    """Return the language of this context."""
    return _locale.get()


def negotiate_locale(*tags: Any) -> str:
    """Return the first tag that matches one of `LANGUAGES`, exactly or by its primary subtag; English if none.

    Args:
        tags: BCP 47 tags in order of preference; untrusted, may be of any type.
    """
    for tag in tags:
        tag = tag.lower() if isinstance(tag, str) else ""
        for same in (lambda a, b: a == b, lambda a, b: a.partition("-")[0] == b.partition("-")[0]):
            if language := next((language_tag for language_tag in LANGUAGES if same(language_tag.lower(), tag)), None):
                return language
    return ENGLISH


def _(message: str, /, **values: Any) -> str:
    """Translate a message to the language of the context, and format it with values.

    Values are inserted unchanged: they are neither translated nor formatted.

    Args:
        message: a whole sentence, as a literal, with names in braces as in `str.format`; without values it is
            not formatted, and the translation may serve as a template.
    """
    return translate(message, **values)


def N_(message: str) -> str:
    """Mark a literal message for `translate`, and return it unchanged."""
    return message


def translate(message: str, /, **values: Any) -> str:
    """Translate a message that was marked by `N_`, and format it with values."""
    translation = (
        _translations(current_locale()).gettext(message) if message else ""
    )  # "" is the key of the catalogue's header
    return translation.format(**values) if values else translation


def ngettext(singular: str, plural: str, count: int, **values: Any) -> str:
    """Translate and format a message with singular and plural forms; `{count}` is the number."""
    return _translations(current_locale()).ngettext(singular, plural, count).format(count=count, **values)


@cache
def _translations(language: str) -> gettext.NullTranslations:
    return gettext.translation("explorer", CATALOGUES, [language.replace("-", "_")], fallback=language == ENGLISH)


def messages_for_js(language: str) -> dict[str, Any]:
    """Return the catalogue of a language for the page's script; {} for English.

    Returns:
        message -> translation, or for a singular the list of its plural forms; and "" -> the index of the
        plural form for each count from 0 to 199; a larger count uses that of 100 + its last two digits.
    """
    catalogue = _translations(language)
    if not isinstance(catalogue, gettext.GNUTranslations):
        return {}
    messages: dict[str, Any] = {"": [catalogue.plural(count) for count in range(COUNTS)]}
    for message, translation in catalogue._catalog.items():
        if isinstance(message, tuple):  # a singular, and the number of one of its plural forms: in their order
            messages.setdefault(message[0], []).append(translation)
        elif message:
            messages[message] = translation
    return messages
