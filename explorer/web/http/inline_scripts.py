"""Scripts that stand in the page itself, as they are to run before anything that it fetches."""

import json
import re
from functools import cache
from pathlib import Path

from explorer import language

INLINE = Path(__file__).parents[1] / "inline"
SAID = re.compile(r"\b_\(\"(.+?)\"\)")


@cache
def inline_scripts() -> bytes:
    """A tag for each."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(INLINE.glob("*.js")))
    return "".join(f"<script>{with_messages(text)}</script>" for text in texts).encode()


def with_messages(script: str) -> str:
    """The script with what it says in every language in the place of its first `{}`: the module that would know it may
    not come."""
    if not (said := SAID.findall(script)):
        return script
    catalogues = {name: language.for_script(name) for name in language.LANGUAGES}
    messages = {name: {text: known[text] for text in said if text in known} for name, known in catalogues.items()}
    return script.replace("{}", json.dumps(messages).replace("</", r"<\/"), 1)
