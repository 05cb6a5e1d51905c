"""What a room is called, and how its teacher and its students are told apart.

A code is ten of 32 letters and digits, 50 bits: short enough to be typed, and of 2⁵⁰ ≈ 10¹⁵ codes the 200 rooms that
may be open are so few that a guess finds one in 5 × 10¹² tries. An address that asked for thirty rooms that are not
there joins none for the rest of the minute (`limits.py`), so that it would take some 300,000 years. A key has 192 bits:
it is not typed, and nobody but the teacher's page ever has it.
"""

import hashlib
import hmac
import re
import secrets

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Douglas Crockford's: no letter is taken for a digit
LENGTH, KEY_BYTES = 10, 24
MEANT = str.maketrans("OIL", "011", " -–—")
STUDENT = re.compile(r"[0-9a-f]{32}")  # 128 random bits that a student's page makes up


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _place in range(LENGTH))


def new_key() -> str:
    return secrets.token_urlsafe(KEY_BYTES)


def code_in(text: object) -> str | None:
    """The code that somebody typed, however they wrote it; None where that is none."""
    code = text[:40].upper().translate(MEANT) if isinstance(text, str) else ""
    return code if len(code) == LENGTH and set(code) <= set(ALPHABET) else None


def is_student(name: object) -> bool:
    return isinstance(name, str) and STUDENT.fullmatch(name) is not None


def digest(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def fits(key: object, kept: str) -> bool:
    """Whether a key is the one that was kept so."""
    return isinstance(key, str) and hmac.compare_digest(digest(key), kept)
