"""Chat templates: how the messages of a conversation become the text that a chat model reads.

A template is a program in Jinja, by a stranger. As in transformers it runs in jinja2's sandbox, which has no access to
Python, and here its output and its loops are bounded, too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model.checkpoint_reader import read_json, require_readable

TEMPLATE_FILE, SETTINGS_FILE = "chat_template.jinja", "tokenizer_config.json"
MAX_TEMPLATE_BYTES = 1 << 20
MAX_RENDERED_CHARACTERS = 1 << 22
Message = Mapping[str, Any]  # "role": "system", "user" or "assistant"; "content": a text


def read_chat_template(folder: Path) -> str | None:
    """Return the chat template of a folder that transformers saved; None if it has none.

    Of several templates, this is the one named "default".

    Raises:
        ModelError: a file cannot be read.
    """
    path = folder / TEMPLATE_FILE
    if path.exists():
        return require_readable(path, MAX_TEMPLATE_BYTES).read_text(encoding="utf-8")
    if not (folder / SETTINGS_FILE).exists():
        return None
    template = read_json(folder / SETTINGS_FILE).get("chat_template")
    if isinstance(template, list):
        names = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = names.get("default")
    return template if isinstance(template, str) else None
