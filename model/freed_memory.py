"""Freed memory back to the system."""

import ctypes
from collections.abc import Callable
from functools import cache


def give_back():
    """Hand what was freed, but lies between what is used, to the system; only glibc needs to be told.

    It keeps a heap for every few threads, each as large as it once was: pages of the one are of no use to another.
    """
    if trim := malloc_trim():
        trim(0)


@cache
def malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):  # another system, another library
        return None
