"""Locale of a request."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from explorer.translations import current_locale, negotiate_locale


def locale_from_state(arguments: Iterable[Any]) -> str:
    """Return the locale of the page's state among some arguments; the current locale if there is none."""
    states = (argument for argument in arguments if isinstance(argument, Mapping) and "lang" in argument)
    return next((negotiate_locale(state["lang"]) for state in states), current_locale())


def locale_from_request(scope: Scope) -> str:
    """Return the locale of a request: the URL's `lang`, or the cookie `lang`, or `Accept-Language`.

    See RFC 9110, section 12.5.4.

    Args:
        scope: of an HTTP request (ASGI).
    """
    requested = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("lang", [])
    headers = Headers(scope=scope)
    chosen = cookie_parser(headers.get("cookie", "")).get("lang")
    return negotiate_locale(*requested, chosen, *parse_accept_language_header(headers.get("accept-language", "")))


def parse_accept_language_header(header: str) -> list[str]:
    """Return the tags of an `Accept-Language` header, the most preferred first."""
    weighted_tags = []
    for item in header.split(","):
        tag, _semicolon, weight = item.partition(";")
        try:
            weighted_tags.append((float(weight.strip().removeprefix("q=") or 1), tag.strip()))
        except ValueError:  # anybody may send anything
            continue
    return [
        tag for weight, tag in sorted(weighted_tags, key=lambda weighted_tag: -weighted_tag[0]) if tag and weight > 0
    ]
