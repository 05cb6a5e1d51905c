"""Settings of glibc's malloc that return freed memory to other threads or to the system."""

import ctypes
from collections.abc import Callable
from functools import cache

ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def limit_malloc_arenas(max_arenas: int = 2):
    """Limit the number of malloc arenas for threads that start from now on; no effect without glibc.

    By default glibc uses up to eight per core, and memory freed in one thread's arena is not available to
    another's.
    """
    if mallopt := _libc_function("mallopt"):
        mallopt(ARENA_MAX, max_arenas)


def trim_heap():
    """Return freed memory inside the heaps to the system; no effect without glibc.

    Otherwise each arena stays as large as it once was, and its pages are of no use to another.
    """
    if malloc_trim := _libc_function("malloc_trim"):
        malloc_trim(0)


@cache
def _libc_function(name: str) -> Callable[..., int] | None:
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, TypeError, AttributeError):  # another system, another library
        return None
