"""The messages of a conversation as text, as the page's state and URLs have them: a JSON list."""

import json
from collections.abc import Sequence
from typing import Any

from model.chat_messages import Message, check_messages
from model.errors import ModelError

MAX_CHAT_CHARACTERS = 20_000  # of the text: a URL has room for as many


def parse_chat(text: Any) -> str:
    """Return the text of messages in its shortest form; "" for anything else."""
    if not isinstance(text, str) or not 0 < len(text) <= MAX_CHAT_CHARACTERS:
        return ""
    try:
        return format_chat(check_messages(json.loads(text)))
    except (ValueError, TypeError, RecursionError, ModelError):
        return ""


def format_chat(messages: Sequence[Message]) -> str:
    """Return messages as text."""
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":"))


def chat_messages(chat: str) -> list[Message]:
    """Return the messages in a text of `parse_chat`; none for ""."""
    return json.loads(chat) if chat else []
