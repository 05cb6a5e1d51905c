"""Scripts that are part of the page itself."""

import json
import re

from explorer.translations import messages_for_js
from explorer.web.middleware.security_middleware import INLINE_FOLDER, inline_scripts, with_messages


def test_the_page_gets_each_of_them():
    scripts = re.findall(r"<script>(.*?)</script>", inline_scripts().decode(), re.DOTALL)
    assert [script.splitlines()[1] for script in scripts] == [
        path.read_text(encoding="utf-8").splitlines()[1] for path in sorted(INLINE_FOLDER.iterdir())
    ]
    assert scripts


def test_what_one_says_it_knows_in_every_language():
    message = "The server does not answer."
    script = with_messages(f'const messages = {{}}; const other = {{}}; say(_("{message}"));')
    messages, rest = re.fullmatch(r"const messages = (.+?); (const other.+)", script).groups()
    assert json.loads(messages) == {"en": {}, "zh-CN": {message: messages_for_js("zh-CN")[message]}}
    assert rest == f'const other = {{}}; say(_("{message}"));'


def test_no_translation_ends_the_script(monkeypatch):
    monkeypatch.setattr("explorer.translations.messages_for_js", lambda name: {"a": "</script><b>"})
    assert "</" not in with_messages('{} _("a")')


def test_what_says_nothing_stays_as_it_is():
    assert with_messages("const none = {};") == "const none = {};"
