"""Room codes, and keys that tell a room's teacher from its students.

A code is ten of 32 letters and digits, 50 bits: short enough to be typed, and of 2⁵⁰ ≈ 10¹⁵ codes at most 200 are
open, so that a guess finds one in 5 × 10¹² tries. An address that requested thirty rooms that do not exist can join
none for the rest of the minute (`limits.py`), so that it would take some 300,000 years. A key has 192 bits: it is
not typed, and only the teacher's page has it.
"""

import hashlib
import hmac
import re
import secrets

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Douglas Crockford's: no letter is taken for a digit
CODE_LENGTH, KEY_BYTES = 10, 24
CODE_TRANSLATION = str.maketrans("OIL", "011", " -–—")
STUDENT_PATTERN = re.compile(r"[0-9a-f]{32}")  # 128 random bits that a student's page makes up


def new_code() -> str:
    """Return a random code of a room."""
    return "".join(secrets.choice(ALPHABET) for _place in range(CODE_LENGTH))


def new_key() -> str:
    """Return a random key of a teacher."""
    return secrets.token_urlsafe(KEY_BYTES)


def parse_code(text: object) -> str | None:
    """Return the code that a user typed, in any spelling; None if it is no code."""
    code = text[:40].upper().translate(CODE_TRANSLATION) if isinstance(text, str) else ""
    return code if len(code) == CODE_LENGTH and set(code) <= set(ALPHABET) else None


def is_valid_student_name(name: object) -> bool:
    """Return whether a value is a student's random name."""
    return isinstance(name, str) and STUDENT_PATTERN.fullmatch(name) is not None


def hash_key(key: str) -> str:
    """Return the hash that is stored in place of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def matches_digest(key: object, expected: str) -> bool:
    """Return whether a key has this hash; compares in constant time."""
    return isinstance(key, str) and hmac.compare_digest(hash_key(key), expected)
