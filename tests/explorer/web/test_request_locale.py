"""Choice of the page's language: by the URL, then the page's state, then the browser's preference."""

import pytest

from explorer.translations import use_locale
from explorer.web.user_messages import locale_from_request, locale_from_state, parse_accept_language_header
from tests.subtest_loops import subtest_each


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        ("", []),
        ("zh-CN", ["zh-CN"]),
        ("fr, zh-CN;q=0.8, en;q=0.9", ["fr", "en", "zh-CN"]),
        ("en;q=0, zh", ["zh"]),
        ("en;q=much, zh;level=1, fr;q=0.5", ["fr"]),
    ],
)
def test_accept_language_header_is_sorted_by_preference(header, tags):
    assert parse_accept_language_header(header) == tags


@subtest_each(
    ("query", "header", "language"),
    [
        (b"", b"", "en"),
        (b"", b"zh-CN,zh;q=0.9", "zh-CN"),
        (b"lang=zh&text=a", b"en", "zh-CN"),
        (b"lang=en", b"zh-CN", "en"),
        (b"lang=%2e%2e", b"zh-CN", "zh-CN"),
        (b"lang=\xff", b"\xff", "en"),
    ],
)
def test_url_overrides_browser_language(query, header, language):
    assert (
        locale_from_request({"type": "http", "query_string": query, "headers": [(b"accept-language", header)]})
        == language
    )


@pytest.mark.parametrize(
    ("query", "cookie", "language"),
    [(b"", b"a=b; lang=zh-CN", "zh-CN"), (b"lang=en", b"lang=zh-CN", "en"), (b"", b"lang=\xff; ;=", "en")],
)
def test_cookie_overrides_browser_language(query, cookie, language):
    headers = [(b"accept-language", b"en"), (b"cookie", cookie)]
    assert locale_from_request({"type": "http", "query_string": query, "headers": headers}) == language


def test_language_of_state_is_used():
    assert locale_from_state(["a", {"lang": "zh-CN"}, 3]) == "zh-CN"
    assert locale_from_state([{"lang": ["zh"]}]) == "en"
    with use_locale("zh-CN"):
        assert locale_from_state([{}, "a"]) == "zh-CN"
