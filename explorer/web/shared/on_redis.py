"""A store of the processes of several machines: Redis, or what speaks as it does."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from explorer.web.shared.store import MOST_BYTES, Messages, StoreError

PATIENCE = 0.5  # seconds for an answer; whoever waits for this waits for a page
# Keys and sizes by when they are forgotten, beside the values: so a bound in bytes is one of this store alone, whatever
# else the server has. All of it in one step, as others put at the same time.
PUT = """
local ends, sizes, key, value = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local milliseconds, most, prefix = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local time = redis.call('TIME')
local now = 1000 * time[1] + math.floor(time[2] / 1000)
local function forget(keys)
  for _, each in ipairs(keys) do
    redis.call('DEL', prefix .. each)
    redis.call('ZREM', ends, each)
    local size = redis.call('HGET', sizes, each)
    if size and size ~= '0' then redis.call('HINCRBY', sizes, '', '-' .. size) end
    redis.call('HDEL', sizes, each)
  end
end
forget({key})
if milliseconds <= 0 then return end
redis.call('SET', prefix .. key, value, 'PX', milliseconds)
redis.call('ZADD', ends, now + milliseconds, key)
redis.call('HSET', sizes, key, #value)
redis.call('HINCRBY', sizes, '', #value)
forget(redis.call('ZRANGEBYSCORE', ends, '-inf', now))
while tonumber(redis.call('HGET', sizes, '')) > most do
  forget(redis.call('ZRANGE', ends, 0, 0))
end
for _, each in ipairs(KEYS) do
  if redis.call('PTTL', each) < milliseconds then redis.call('PEXPIRE', each, milliseconds) end
end
"""


class NoRedis(StoreError):
    """The package is not installed."""


class OnRedis:
    """See `Store`.

    Args:
        address: redis://[:password@]host[:port][/number], or rediss:// for an encrypted connection.
        name: of the store, as several may be on one server.
        most_bytes: of all values of that name.

    Raises:
        NoRedis: Python's package is not there.
        ValueError: that is no address.
    """

    def __init__(self, address: str, name: str, most_bytes: int = MOST_BYTES):
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise NoRedis("--shared redis://… takes Python’s package for it: pip install redis") from None
        self.most_bytes, self._errors_of_redis = most_bytes, redis.RedisError
        parts = urlsplit(address)
        self.place = f"{parts.scheme}://{parts.hostname}:{parts.port or 6379}"
        waits = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE, "retry": Retry(NoBackoff(), 1)}
        self._redis = redis.Redis.from_url(address, **waits)
        self._prefix = f"explorer:{{{name}}}:"  # in braces, so that a cluster keeps all of it at one place
        self._ends, self._sizes = f"{self._prefix}ends", f"{self._prefix}sizes"
        self._put = self._redis.register_script(PUT)

    def get(self, key: str) -> bytes | None:
        with self._errors():
            return self._redis.get(self._value(key))

    def put(self, key: str, value: bytes, seconds: float):
        if len(value) > self.most_bytes:
            return self.drop(key)
        with self._errors():
            given = [key, value, math.ceil(1000 * seconds), self.most_bytes, self._value("")]
            self._put(keys=[self._ends, self._sizes], args=given)

    def drop(self, key: str):
        self.put(key, b"", 0)

    def keys(self, prefix: str = "") -> list[str]:
        with self._errors():
            seconds, microseconds = self._redis.time()
            found = self._redis.zrangebyscore(self._ends, f"({1000 * seconds + microseconds // 1000}", "+inf")
        return sorted(key for key in (each.decode() for each in found) if key.startswith(prefix))

    def publish(self, channel: str, message: bytes):
        with self._errors():
            self._redis.publish(self._channel(channel), message)

    @contextmanager
    def listen(self, channel: str) -> Iterator[Messages]:
        heard = self._redis.pubsub()
        try:
            with self._errors():
                heard.subscribe(self._channel(channel))
                heard.get_message(timeout=PATIENCE)  # that it listens: what is published from now on comes
            yield _Heard(heard, self)
        finally:
            heard.close()

    def _value(self, key: str) -> str:
        return f"{self._prefix}value:{key}"

    def _channel(self, channel: str) -> str:
        return f"{self._prefix}channel:{channel}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (self._errors_of_redis, OSError) as error:
            raise StoreError(f"{self.place}: {error}") from error


class _Heard:
    def __init__(self, heard: Any, store: OnRedis):
        self.heard, self.store = heard, store

    def next(self, seconds: float) -> bytes | None:
        end = time.monotonic() + seconds
        with self.store._errors():
            while True:
                told = self.heard.get_message(timeout=max(0.0, end - time.monotonic()))
                if told and told["type"] == "message":
                    return told["data"]
                if time.monotonic() >= end:
                    return None
