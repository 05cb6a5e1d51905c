"""Store for the processes of several machines: Redis, or a compatible server."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from explorer.web.stores.store import MAX_BYTES, Messages, StoreError

TIMEOUT_S = 0.5  # seconds for an answer; whoever waits for this waits for a page
# Keys and sizes by when they are forgotten, beside the values: so a bound in bytes is one of this store alone, whatever
# else the server has. All of it in one step, as others put at the same time.
PUT_SCRIPT = """
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


class RedisNotInstalledError(StoreError):
    """The `redis` package is not installed."""


class RedisStore:
    """Store in Redis, see `Store`.

    Args:
        address: redis://[:password@]host[:port][/number], or rediss:// for an encrypted connection.
        name: of the store, as several may be on one server.
        max_bytes: of all values of that name.

    Raises:
        RedisNotInstalledError: the `redis` package is not installed.
        ValueError: the address is invalid.
    """

    def __init__(self, address: str, name: str, max_bytes: int = MAX_BYTES):
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise RedisNotInstalledError(
                "--store redis://… needs the Python package redis: pip install redis"
            ) from None
        self.max_bytes, self._errors_of_redis = max_bytes, redis.RedisError
        parts = urlsplit(address)
        self.location = f"{parts.scheme}://{parts.hostname}:{parts.port or 6379}"
        waits = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S, "retry": Retry(NoBackoff(), 1)}
        self._redis = redis.Redis.from_url(address, **waits)
        self._prefix = f"explorer:{{{name}}}:"  # in braces, so that a cluster keeps all of it at one place
        self._ends, self._sizes = f"{self._prefix}ends", f"{self._prefix}sizes"
        self._put = self._redis.register_script(PUT_SCRIPT)

    def get(self, key: str) -> bytes | None:
        with self._errors():
            return self._redis.get(self._value_key(key))

    def put(self, key: str, value: bytes, seconds: float):
        if len(value) > self.max_bytes:
            return self.drop(key)
        with self._errors():
            args = [key, value, math.ceil(1000 * seconds), self.max_bytes, self._value_key("")]
            self._put(keys=[self._ends, self._sizes], args=args)

    def drop(self, key: str):
        self.put(key, b"", 0)

    def keys(self, prefix: str = "") -> list[str]:
        with self._errors():
            seconds, microseconds = self._redis.time()
            encoded_keys = self._redis.zrangebyscore(self._ends, f"({1000 * seconds + microseconds // 1000}", "+inf")
        return sorted(key for key in (encoded_key.decode() for encoded_key in encoded_keys) if key.startswith(prefix))

    def publish(self, channel: str, message: bytes):
        with self._errors():
            self._redis.publish(self._channel_name(channel), message)

    @contextmanager
    def listen(self, channel: str) -> Iterator[Messages]:
        subscription = self._redis.pubsub()
        try:
            with self._errors():
                subscription.subscribe(self._channel_name(channel))
                subscription.get_message(timeout=TIMEOUT_S)  # that it listens: what is published from now on comes
            yield _RedisMessages(subscription, self)
        finally:
            subscription.close()

    def _value_key(self, key: str) -> str:
        return f"{self._prefix}value:{key}"

    def _channel_name(self, channel: str) -> str:
        return f"{self._prefix}channel:{channel}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (self._errors_of_redis, OSError) as error:
            raise StoreError(f"{self.location}: {error}") from error


class _RedisMessages:
    def __init__(self, subscription: Any, store: RedisStore):
        self.subscription, self.store = subscription, store

    def next(self, seconds: float) -> bytes | None:
        end = time.monotonic() + seconds
        with self.store._errors():
            while True:
                message = self.subscription.get_message(timeout=max(0.0, end - time.monotonic()))
                if message and message["type"] == "message":
                    return message["data"]
                if time.monotonic() >= end:
                    return None
