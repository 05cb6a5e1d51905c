"""Lookup of messages, and formatting of their values."""

import gettext
from concurrent.futures import ThreadPoolExecutor

import pytest
from babel.messages import Catalog
from babel.messages.mofile import write_mo
from babel.messages.plurals import PLURALS

from explorer import translations
from explorer.translations import (
    LANGUAGES,
    N_,
    _,
    current_locale,
    messages_for_js,
    negotiate_locale,
    ngettext,
    translate,
    use_locale,
)
from tests.subtest_loops import subtest_each


@pytest.fixture
def polish(tmp_path, monkeypatch):
    """Locale with three plural forms."""
    catalogue = Catalog(locale="pl")
    catalogue.add("looks at {token}", "patrzy na {token}")
    catalogue.add("token", "żeton")
    catalogue.add(
        ("{count} token of {text}", "{count} tokens of {text}"), ["{count} a {text}", "{count} b", "{count} c"]
    )
    with (tmp_path / "explorer.mo").open("wb") as file:
        write_mo(file, catalogue)
    with (tmp_path / "explorer.mo").open("rb") as file:
        polish = gettext.GNUTranslations(file)
    monkeypatch.setattr(translations, "_translations", lambda _name: polish)


def test_untranslated_message_is_english():
    assert _("looks at {token}", token="fox") == "looks at fox"
    assert [ngettext("{count} token", "{count} tokens", count) for count in (0, 1, 2)] == [
        "0 tokens",
        "1 token",
        "2 tokens",
    ]


def test_message_without_values_is_not_formatted():
    assert _("looks at {token}").format(token="fox") == "looks at fox"


def test_deferred_message_is_translated_on_use(polish):
    marked = N_("looks at {token}")
    assert (marked, translate(marked, token="fox")) == ("looks at {token}", "patrzy na fox")


@subtest_each("token", ["{token}", "{0}", "{", "token", "{{}}", "⟦"])
def test_values_are_neither_translated_nor_formatted(polish, token):
    assert _("looks at {token}", token=token) == f"patrzy na {token}"
    assert ngettext("{count} token of {text}", "{count} tokens of {text}", 1, text=token) == f"1 a {token}"


def test_numbers_keep_their_format():
    assert (
        _("{tokens:,} of {share:.2g}, got {name!r:.4}", tokens=1234, share=0.123, name="abcdef")
        == "1,234 of 0.12, got 'abc"
    )


@pytest.mark.parametrize(("count", "told"), [(1, "1 a fox"), (3, "3 b"), (5, "5 c"), (22, "22 b"), (112, "112 c")])
def test_plural_forms_follow_language(polish, count, told):
    assert ngettext("{count} token of {text}", "{count} tokens of {text}", count, text="fox") == told


def test_english_has_no_js_messages():
    assert messages_for_js("en") == {}


def test_js_messages_contain_catalogue(polish):
    messages = messages_for_js("pl")
    forms = messages.pop("")
    assert [forms[count] for count in (0, 1, 2, 5, 22, 112, 199)] == [2, 0, 1, 2, 1, 2, 2]
    assert messages == {
        "looks at {token}": "patrzy na {token}",
        "token": "żeton",
        "{count} token of {text}": ["{count} a {text}", "{count} b", "{count} c"],
    }


@subtest_each(
    ("wanted", "language"),
    [
        ((), "en"),
        (("zh-CN",), "zh-CN"),
        (("zh-cn",), "zh-CN"),
        (("zh",), "zh-CN"),
        (("zh-Hant-TW",), "zh-CN"),
        (("en-GB", "zh-CN"), "en"),
        (("fr", "zh", "en"), "zh-CN"),
        (("../..", "", None, 3), "en"),
    ],
)
def test_first_available_language_is_chosen(wanted, language):
    assert negotiate_locale(*wanted) == language


def test_locale_belongs_to_its_context():
    with use_locale("zh-CN"):
        assert (current_locale(), _("layer")) == ("zh-CN", "层")
        with ThreadPoolExecutor(1) as others:
            assert others.submit(lambda: (current_locale(), _("layer"))).result() == ("en", "layer")
    assert (current_locale(), _("layer")) == ("en", "layer")


def test_every_language_has_a_folder_and_a_name():
    folders = {path.parent.name.replace("_", "-") for path in translations.CATALOGUES.glob("*/LC_MESSAGES")}
    assert folders | {"en"} == set(LANGUAGES)


def test_large_counts_use_forms_of_small_counts():
    for name, (_number, rule) in PLURALS.items():
        form = gettext.c2py(rule)
        assert [form(count) for count in range(200, 2000)] == [form(100 + count % 100) for count in range(200, 2000)], (
            name
        )
