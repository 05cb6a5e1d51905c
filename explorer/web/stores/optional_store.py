"""Store that may be unavailable: it then returns nothing, and the caller continues without it."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from explorer.web.stores.store import Store, StoreError

LOG = logging.getLogger(__name__)
RETRY_AFTER_S = 5.0  # seconds until one that did not answer is asked again: each question may wait for an answer


class OptionalStore:
    """Wrapper of a store that ignores errors; when the store fails, that is logged once.

    Args:
        store: called as long as it answers, and again `RETRY_AFTER_S` later.
    """

    def __init__(self, store: Store):
        self.store = store
        self._retry_at, self._lock = 0.0, threading.Lock()

    @property
    def location(self) -> str:
        return self.store.location

    @property
    def is_available(self) -> bool:
        """True unless the last call failed."""
        return self._retry_at == 0

    def get(self, key: str) -> bytes | None:
        return self._call(self.store.get, key)

    def put(self, key: str, value: bytes, seconds: float):
        self._call(self.store.put, key, value, seconds)

    def drop(self, key: str):
        self._call(self.store.drop, key)

    def _call(self, method: Callable[..., Any], *args: Any) -> Any:
        if time.monotonic() < self._retry_at:
            return None
        try:
            answer = method(*args)
        except StoreError as error:
            self._set_available(False, error)
            return None
        if not self.is_available:
            self._set_available(True)
        return answer

    def _set_available(self, is_available: bool, error: StoreError | None = None):
        with self._lock:
            was_available, self._retry_at = self.is_available, 0.0 if is_available else time.monotonic() + RETRY_AFTER_S
        if was_available and not is_available:
            LOG.warning("the shared store does not respond, continuing without it: %s", error)
        elif is_available and not was_available:
            LOG.info("the shared store responds again")
