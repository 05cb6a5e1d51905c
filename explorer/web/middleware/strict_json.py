"""Strict JSON (RFC 8259): Python's own reader also accepts what no other program can read."""

import json
import math
from typing import Any

from explorer.state.errors import UserError
from explorer.translations import _


def parse_json(body: bytes) -> Any:
    """Return the value of a JSON body; a lone surrogate is read as U+FFFD.

    Raises:
        UserError: it is not JSON in UTF-8, has NaN, an infinity or a repeated name in an object, or is nested too
            deeply.
    """
    try:
        return _parse(body.decode("utf-8-sig"))
    except RecursionError:
        raise UserError(_("The request is nested too deeply: send fewer lists within each other.")) from None
    except UnicodeDecodeError:
        raise UserError(_("The request must be JSON in UTF-8, and its bytes are not UTF-8.")) from None
    except json.JSONDecodeError as error:
        raise UserError(_("The request must be JSON, and is not from character {place} on.", place=error.pos)) from None
    except UserError:
        raise
    except ValueError:  # of an integer of thousands of digits
        raise UserError(_("The request has a number of too many digits.")) from None


def as_json(value: Any) -> bytes:
    """Return a value as JSON.

    Called on the computing thread: on the server's thread all other clients would wait for it.

    Raises:
        ValueError: a number is not finite.
    """
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def has_surrogates(body: bytes) -> bool:
    """Return whether a body may have a lone surrogate, which in UTF-8 can only be an escape."""
    return b"\\ud" in body or b"\\uD" in body


def _parse(text: str) -> Any:
    value = json.loads(text, object_pairs_hook=_to_dict, parse_constant=_refuse_constant, parse_float=_parse_float)
    if "\\ud" in text or "\\uD" in text:
        whole = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        return json.loads(whole.decode("utf-16-le", "replace"))
    return value


def _to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _value in pairs]
        repeated_name = next(name for name in names if names.count(name) > 1)
        raise UserError(_("The request has {name!r:.40} twice in one object: send it once.", name=repeated_name))
    return fields


def _refuse_constant(name: str):
    raise UserError(_("JSON has no number {name}: send a finite one.", name=name))


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        _refuse_constant(text[:40])
    return value
