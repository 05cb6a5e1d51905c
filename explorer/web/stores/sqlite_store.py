"""Store for the processes of one machine: an SQLite file."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from explorer.web.stores.store import MAX_BYTES, MESSAGE_TTL_S, Messages, StoreError

BUSY_TIMEOUT_S = 1.0  # seconds to wait for another process's writing
POLL_INTERVAL_S = 0.05  # seconds between two looks for messages
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
CHANNEL_CONDITION = "WHERE name = ? AND channel = ? AND number > ? ORDER BY number"


class SqliteStore:
    """Store in an SQLite file, see `Store`.

    Args:
        path: of the file, which is created if it does not exist.
        name: of the store, as several may be in one file.
        max_bytes: of all values of that name.

    Raises:
        StoreError: the file cannot be opened.
    """

    location = "a file"

    def __init__(self, path: str | Path, name: str, max_bytes: int = MAX_BYTES):
        self.name, self.max_bytes = name, max_bytes
        self._lock = threading.Lock()
        with _errors():
            self._file = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = WAL")  # who reads does not wait for who writes
            self._file.execute("PRAGMA synchronous = OFF")  # it need not outlive the machine
            self._file.executescript(TABLES)

    def get(self, key: str) -> bytes | None:
        rows = self._query("SELECT value FROM kept WHERE name = ? AND key = ? AND until > ?", key, time.time())
        return rows[0][0] if rows else None

    def put(self, key: str, value: bytes, seconds: float):
        now = time.time()
        if len(value) > self.max_bytes:
            return self.drop(key)
        with self._lock, _errors(), _transaction(self._file):
            row = self.name, key, now + seconds, len(value), value
            self._file.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)", row)
            self._file.execute("DELETE FROM kept WHERE name = ? AND until <= ?", (self.name, now))
            ((total,),) = self._file.execute("SELECT SUM(size) FROM kept WHERE name = ?", (self.name,))
            oldest = "SELECT key, size FROM kept WHERE name = ? ORDER BY until LIMIT 1"
            while total and total > self.max_bytes:
                ((key, size),) = self._file.execute(oldest, (self.name,))
                self._file.execute("DELETE FROM kept WHERE name = ? AND key = ?", (self.name, key))
                total -= size

    def drop(self, key: str):
        self._query("DELETE FROM kept WHERE name = ? AND key = ?", key)

    def keys(self, prefix: str = "") -> list[str]:
        rows = self._query("SELECT key FROM kept WHERE name = ? AND until > ? ORDER BY key", time.time())
        return [key for (key,) in rows if key.startswith(prefix)]

    def publish(self, channel: str, message: bytes):
        now = time.time()
        with self._lock, _errors(), _transaction(self._file):
            row = self.name, channel, message, now
            self._file.execute("INSERT INTO said (name, channel, message, at) VALUES (?, ?, ?, ?)", row)
            self._file.execute("DELETE FROM said WHERE at < ?", (now - MESSAGE_TTL_S,))

    @contextmanager
    def listen(self, channel: str) -> Iterator[Messages]:
        ((last,),) = self._query("SELECT COALESCE(MAX(number), 0) FROM said WHERE name = ?")
        yield _SqliteMessages(self, channel, last)

    def _query(self, sql: str, *values) -> list[tuple]:
        with self._lock, _errors():
            return self._file.execute(sql, (self.name, *values)).fetchall()


class _SqliteMessages:
    def __init__(self, store: SqliteStore, channel: str, last: int):
        self.store, self.channel, self.last = store, channel, last

    def next(self, seconds: float) -> bytes | None:
        end, sql = time.monotonic() + seconds, f"SELECT number, message FROM said {CHANNEL_CONDITION} LIMIT 1"
        while True:
            rows = self.store._query(sql, self.channel, self.last)
            if rows:
                ((self.last, message),) = rows
                return message
            if (remaining_s := end - time.monotonic()) <= 0:
                return None
            time.sleep(min(POLL_INTERVAL_S, remaining_s))


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(str(error)) from error


@contextmanager
def _transaction(file: sqlite3.Connection) -> Iterator[None]:
    """Run the block as one transaction."""
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        file.execute("ROLLBACK")
        raise
    file.execute("COMMIT")
