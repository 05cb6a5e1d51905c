"""Scripts within the HTML page, which must run before any that it loads."""

import json
import re
from functools import cache
from pathlib import Path

from explorer import translations

INLINE = Path(__file__).parents[1] / "inline"
MESSAGE_PATTERN = re.compile(r"\b_\(\"(.+?)\"\)")


@cache
def inline_scripts() -> bytes:
    """Return a script tag for each of the inline scripts."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(INLINE.glob("*.js")))
    return "".join(f"<script>{with_messages(text)}</script>" for text in texts).encode()


def with_messages(script: str) -> str:
    """Return a script with its messages in all languages in place of its first `{}`; it cannot rely on modules."""
    if not (texts := MESSAGE_PATTERN.findall(script)):
        return script
    catalogues = {name: translations.messages_for_js(name) for name in translations.LANGUAGES}
    messages = {
        name: {text: catalogue[text] for text in texts if text in catalogue} for name, catalogue in catalogues.items()
    }
    return script.replace("{}", json.dumps(messages).replace("</", r"<\/"), 1)
