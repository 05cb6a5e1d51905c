"""Freed memory for whoever needs some next: another thread, or the system."""

import ctypes
from collections.abc import Callable
from functools import cache

ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def share_heaps(most: int = 2):
    """Have threads that are started from now on take their memory from so few heaps; only glibc knows of it.

    By itself it keeps up to eight a core: what one thread freed, another, which captures next, could not take.
    """
    if limit := _of_libc("mallopt"):
        limit(ARENA_MAX, most)


def give_back():
    """Hand what was freed, but lies between what is used, to the system; only glibc needs to be told.

    Each of its heaps stays as large as it once was: pages of the one are of no use to another.
    """
    if trim := _of_libc("malloc_trim"):
        trim(0)


@cache
def _of_libc(name: str) -> Callable[..., int] | None:
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, TypeError, AttributeError):  # another system, another library
        return None
