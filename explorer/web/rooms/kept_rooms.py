"""What the shared store has of rooms, for as long as they are open."""

import json
import secrets
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from explorer.web.rooms.codes import digest, fits, new_code, new_key
from explorer.web.shared.store import Store

LASTS = 4 * 3600.0  # seconds after the teacher's last sign
THERE_LASTS = 60.0  # seconds after which people are gone whose process told nothing more of them
MOST_ROOMS, MOST_BYTES = 200, 32 << 20
CHANNEL = "rooms"


@dataclass(frozen=True)
class Led:
    """What the teacher does.

    Attributes:
        leads: whether the class is to follow.
        state: the page's, to be followed; None where it does not lead.
        lesson: that the teacher goes through; "" for none.
        step: of it, from 1.
    """

    leads: bool = True
    state: Mapping[str, Any] | None = None
    lesson: str = ""
    step: int = 0


class KeptRooms:
    """Rooms in a store. Each process has its own keys for what it writes, and each student theirs, so that nobody
    overwrites another's. Nothing is there of a student but their last reply to each question, by a random name.

    Every method raises StoreError.

    Args:
        store: where.
    """

    def __init__(self, store: Store):
        self.store = store

    def open(self) -> tuple[str, str] | None:
        """The code and the key of a new room; None where as many are open as may be."""
        rooms = {name.partition("/")[2] for name in self.store.keys("room/")}
        self._forget_all_but(rooms)
        if len(rooms) >= MOST_ROOMS:
            return None
        code, key = new_code(), new_key()
        self.store.put(f"room/{code}", digest(key).encode(), LASTS)
        return code, key

    def is_there(self, code: str) -> bool:
        return self.store.get(f"room/{code}") is not None

    def is_teacher(self, code: str, key: object) -> bool:
        kept = self.store.get(f"room/{code}")
        return kept is not None and fits(key, kept.decode())

    def renew(self, code: str):
        """The teacher gave a sign."""
        for name in (f"room/{code}", f"{code}/led"):
            if (kept := self.store.get(name)) is not None:
                self.store.put(name, kept, LASTS)

    def lead(self, code: str, led: Led):
        self._put(code, "led", json.dumps(asdict(led)).encode(), LASTS)
        self.tell(code)

    def led(self, code: str) -> Led:
        kept = self.store.get(f"{code}/led")
        return Led(**json.loads(kept)) if kept else Led()

    def reply(self, code: str, question: str, student: str, reply: str | None):
        """A student's reply in the place of theirs before; None for none."""
        name = f"reply/{question}/{student}"
        if reply is None:
            self.store.drop(f"{code}/{name}")
        else:
            self._put(code, name, reply.encode(), LASTS)
        self.tell(code)

    def replied(self, code: str, question: str) -> list[str]:
        """Who has replied."""
        prefix = f"{code}/reply/{question}/"
        return [key.removeprefix(prefix) for key in self.store.keys(prefix)]

    def counts(self, code: str, question: str) -> dict[str, int]:
        """Reply -> how many gave it, the most frequent first."""
        found = (self.store.get(key) for key in self.store.keys(f"{code}/reply/{question}/"))
        return dict(Counter(sorted(reply.decode() for reply in found if reply is not None)).most_common())

    def say_there(self, code: str, process: str, students: Collection[str]):
        """Which students a process knows to be there."""
        self._put(code, f"there/{process}", json.dumps(sorted(students)).encode(), THERE_LASTS)

    def there(self, code: str) -> set[str]:
        """The students of all processes."""
        kept = (self.store.get(key) for key in self.store.keys(f"{code}/there/"))
        return {student for each in kept if each for student in json.loads(each)}

    def close(self, code: str):
        """Forget the room and all that belongs to it."""
        self.store.drop(f"room/{code}")  # first: nothing is put there any more
        self.forget(code)
        self.tell(code)

    def forget(self, code: str):
        """All that belongs to a room that is no longer there."""
        for key in self.store.keys(f"{code}/"):
            self.store.drop(key)

    def tell(self, code: str):
        """Every process that something changed in a room; nothing of what it is."""
        self.store.publish(CHANNEL, code.encode())

    def _put(self, code: str, name: str, value: bytes, seconds: float):
        if not self.is_there(code):
            return
        self.store.put(f"{code}/{name}", value, seconds)
        if not self.is_there(code):  # it was closed meanwhile
            self.store.drop(f"{code}/{name}")

    def _forget_all_but(self, rooms: Collection[str]):
        """What is left of rooms whose teacher never came back to close them."""
        for key in self.store.keys(""):
            code = key.partition("/")[0]
            if code != "room" and code not in rooms:
                self.store.drop(key)


def new_process() -> str:
    """A name for a process."""
    return secrets.token_hex(8)
