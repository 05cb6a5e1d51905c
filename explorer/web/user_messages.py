"""Messages to the user: the locale of a request, error messages, and notices."""

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.types import Scope

from explorer.errors import UserError
from explorer.tracing.jobs import RequestCancelledError
from explorer.translations import _, current_locale, negotiate_locale, translate
from explorer.web.rate_limits import can_log
from model.errors import ModelError, NonFiniteLogitsError

LOG = logging.getLogger(__name__)
# Mistakes that say in their own words what the visitor can do about them.
USER_ERRORS = (UserError, ModelError, NonFiniteLogitsError)

MAX_CHARACTERS = 2000  # of a message, which may quote user input
OUT_OF_MEMORY_PHRASES = "can't allocate memory", "out of memory"  # as torch says it of the CPU and of other devices


def user_message(error: Exception) -> str:
    """Return the message that the user reads.

    An internal error is logged with its traceback under an id that the message names.
    """
    if isinstance(error, USER_ERRORS):
        text = translated_message(error)
        return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"
    name, is_logged = secrets.token_hex(4), can_log()
    LOG.error("%s: %s", name, type(error).__name__, exc_info=error)
    if is_out_of_memory(error):
        return _("The server has too little memory for this now. Try again later, or with a shorter prompt.")
    if not is_logged:
        return _("Internal error (not your fault). Tell the person who runs the server.")
    return _("Internal error (not your fault). It was logged as {name}.", name=name)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that memory ran out, in NumPy, PyTorch or on a GPU."""
    is_torch_error = isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in OUT_OF_MEMORY_PHRASES)
    return isinstance(error, MemoryError) or is_torch_error


def translated_message(error: Exception) -> str:
    """Return an error's message, translated if it is a ModelError, including the errors among its values."""
    if not isinstance(error, ModelError):
        return str(error)
    values = {
        name: translated_message(value) if isinstance(value, Exception) else value
        for name, value in error.values.items()
    }
    return translate(error.template, **values)


UNPROCESSABLE, SERVER_ERROR, CLIENT_CLOSED_REQUEST = 422, 500, 499  # HTTP's statuses; the last is nginx's


@contextmanager
def errors_as_responses() -> Iterator[None]:
    """Turn the errors of the block into HTTP responses."""
    try:
        yield
    except (HTTPException, ClientDisconnect):
        raise
    except RequestCancelledError:
        raise HTTPException(CLIENT_CLOSED_REQUEST) from None
    except USER_ERRORS as error:
        raise HTTPException(UNPROCESSABLE, user_message(error)) from None
    except Exception as error:
        raise HTTPException(SERVER_ERROR, user_message(error)) from None


_notices: ContextVar[list[str] | None] = ContextVar("notices", default=None)


def warn(error: Exception):
    """Add an error's message to the notices that are sent with the answer."""
    if (notices := _notices.get()) is not None:
        notices.append(user_message(error))


@contextmanager
def collect_notices() -> Iterator[list[str]]:
    """Collect the notices of the block, which are to be sent."""
    notices: list[str] = []
    before = _notices.set(notices)
    try:
        yield notices
    finally:
        _notices.reset(before)


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
