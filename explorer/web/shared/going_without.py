"""A store that may be gone: then nothing is found there, and whoever asks goes on without."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from explorer.web.shared.store import Store, StoreError

LOG = logging.getLogger(__name__)
AGAIN_AFTER = 5.0  # seconds until one that did not answer is asked again: each question may wait for an answer


class GoingWithout:
    """`get`, `put` and `drop` of a store; where it does not answer they find and keep nothing, which is logged once.

    Args:
        store: asked as long as it answers.
    """

    def __init__(self, store: Store):
        self.store = store
        self._asked_again_at, self._lock = 0.0, threading.Lock()

    @property
    def place(self) -> str:
        return self.store.place

    @property
    def is_there(self) -> bool:
        """Whether it answered when it was asked last."""
        return self._asked_again_at == 0

    def get(self, key: str) -> bytes | None:
        return self._asked(self.store.get, key)

    def put(self, key: str, value: bytes, seconds: float):
        self._asked(self.store.put, key, value, seconds)

    def drop(self, key: str):
        self._asked(self.store.drop, key)

    def _asked(self, question: Callable[..., Any], *given: Any) -> Any:
        if time.monotonic() < self._asked_again_at:
            return None
        try:
            answer = question(*given)
        except StoreError as error:
            self._is_there(False, error)
            return None
        if not self.is_there:
            self._is_there(True)
        return answer

    def _is_there(self, is_there: bool, error: StoreError | None = None):
        with self._lock:
            was_there, self._asked_again_at = self.is_there, 0.0 if is_there else time.monotonic() + AGAIN_AFTER
        if was_there and not is_there:
            LOG.warning("the shared store does not answer, it goes on without: %s", error)
        elif is_there and not was_there:
            LOG.info("the shared store answers again")
