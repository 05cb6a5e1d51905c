"""Messages of a conversation, as a chat template writes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from model.errors import ModelError

ROLES = ("system", "user", "assistant", "tool")
Message = Mapping[str, Any]  # "role": one of `ROLES`; "content": a text


def check_messages(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Return messages as plain dictionaries of texts; ModelError unless each has a role and a content."""
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise ModelError("messages are a list of objects with role and content, at least one")
    plain = []
    for message in messages:
        role, content = (message.get(name) if isinstance(message, Mapping) else None for name in ("role", "content"))
        if role not in ROLES or not isinstance(content, str):
            raise ModelError(
                "a message has a role ({known}) and a text as its content, got {got!r}",
                known=", ".join(ROLES),
                got=str(message)[:100],
            )
        plain.append({"role": role, "content": content})
    return plain
