"""A store of the processes of one machine: a file of SQLite's, which is part of Python."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from explorer.web.shared.store import MESSAGES_LAST, MOST_BYTES, Messages, StoreError

BUSY = 1.0  # seconds to wait for another process's writing
LOOKING = 0.05  # seconds between two looks for messages
# Times are the system's, which all its processes have alike. An index alone tells which is forgotten first, and how
# large it is: values are not read for that.
TABLES = """
CREATE TABLE IF NOT EXISTS kept (
    name TEXT, key TEXT, until REAL, size INTEGER, value BLOB, PRIMARY KEY (name, key)
);
CREATE INDEX IF NOT EXISTS by_end ON kept (name, until, key, size);
CREATE TABLE IF NOT EXISTS said (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, channel TEXT, message BLOB, at REAL
);
"""
OF_CHANNEL = "WHERE name = ? AND channel = ? AND number > ? ORDER BY number"


class InAFile:
    """See `Store`.

    Args:
        path: of the file, which is made where there is none.
        name: of the store, as several may be in one file.
        most_bytes: of all values of that name.

    Raises:
        StoreError: no such file can be there.
    """

    place = "a file"

    def __init__(self, path: str | Path, name: str, most_bytes: int = MOST_BYTES):
        self.name, self.most_bytes = name, most_bytes
        self._lock = threading.Lock()
        with _errors():
            self._file = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = WAL")  # who reads does not wait for who writes
            self._file.execute("PRAGMA synchronous = OFF")  # it need not outlive the machine
            self._file.executescript(TABLES)

    def get(self, key: str) -> bytes | None:
        found = self._ask("SELECT value FROM kept WHERE name = ? AND key = ? AND until > ?", key, time.time())
        return found[0][0] if found else None

    def put(self, key: str, value: bytes, seconds: float):
        now = time.time()
        if len(value) > self.most_bytes:
            return self.drop(key)
        with self._lock, _errors(), _at_once(self._file):
            kept = self.name, key, now + seconds, len(value), value
            self._file.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)", kept)
            self._file.execute("DELETE FROM kept WHERE name = ? AND until <= ?", (self.name, now))
            ((total,),) = self._file.execute("SELECT SUM(size) FROM kept WHERE name = ?", (self.name,))
            oldest = "SELECT key, size FROM kept WHERE name = ? ORDER BY until LIMIT 1"
            while total and total > self.most_bytes:
                ((key, size),) = self._file.execute(oldest, (self.name,))
                self._file.execute("DELETE FROM kept WHERE name = ? AND key = ?", (self.name, key))
                total -= size

    def drop(self, key: str):
        self._ask("DELETE FROM kept WHERE name = ? AND key = ?", key)

    def keys(self, prefix: str = "") -> list[str]:
        found = self._ask("SELECT key FROM kept WHERE name = ? AND until > ? ORDER BY key", time.time())
        return [key for (key,) in found if key.startswith(prefix)]

    def publish(self, channel: str, message: bytes):
        now = time.time()
        with self._lock, _errors(), _at_once(self._file):
            said = self.name, channel, message, now
            self._file.execute("INSERT INTO said (name, channel, message, at) VALUES (?, ?, ?, ?)", said)
            self._file.execute("DELETE FROM said WHERE at < ?", (now - MESSAGES_LAST,))

    @contextmanager
    def listen(self, channel: str) -> Iterator[Messages]:
        ((last,),) = self._ask("SELECT COALESCE(MAX(number), 0) FROM said WHERE name = ?")
        yield _Read(self, channel, last)

    def _ask(self, question: str, *values) -> list[tuple]:
        with self._lock, _errors():
            return self._file.execute(question, (self.name, *values)).fetchall()


class _Read:
    def __init__(self, store: InAFile, channel: str, last: int):
        self.store, self.channel, self.last = store, channel, last

    def next(self, seconds: float) -> bytes | None:
        end, next_one = time.monotonic() + seconds, f"SELECT number, message FROM said {OF_CHANNEL} LIMIT 1"
        while True:
            found = self.store._ask(next_one, self.channel, self.last)
            if found:
                ((self.last, message),) = found
                return message
            if (left := end - time.monotonic()) <= 0:
                return None
            time.sleep(min(LOOKING, left))


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(str(error)) from error


@contextmanager
def _at_once(file: sqlite3.Connection) -> Iterator[None]:
    """All that is done in the block, or nothing of it."""
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        file.execute("ROLLBACK")
        raise
    file.execute("COMMIT")
