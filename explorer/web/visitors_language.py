"""In which language a visitor reads."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from explorer.language import spoken, understood


def of_state(arguments: Iterable[Any]) -> str:
    """What the page's state among some arguments says; without one the language that is spoken here."""
    states = (given for given in arguments if isinstance(given, Mapping) and "lang" in given)
    return next((understood(state["lang"]) for state in states), spoken())


def of_request(scope: Scope) -> str:
    """What the address says as `lang`, or else what was chosen before, which the browser has as a cookie of that name,
    or else what the browser would read (RFC 9110, 12.5.4).

    Args:
        scope: of an HTTP request (ASGI).
    """
    asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("lang", [])
    headers = Headers(scope=scope)
    chosen = cookie_parser(headers.get("cookie", "")).get("lang")
    return understood(*asked, chosen, *accepted(headers.get("accept-language", "")))


def accepted(header: str) -> list[str]:
    """The tags of an `Accept-Language`, the one that is liked best first."""
    liked = []
    for item in header.split(","):
        tag, _semicolon, weight = item.partition(";")
        try:
            liked.append((float(weight.strip().removeprefix("q=") or 1), tag.strip()))
        except ValueError:  # anybody may send anything
            continue
    return [tag for weight, tag in sorted(liked, key=lambda one: -one[0]) if tag and weight > 0]
