"""Host names that a server answers to, its content security policy, and scripts that are part of the page."""

import base64
import hashlib
import json
import re
import socket

import pytest

from explorer.translations import messages_for_js
from explorer.web.assets import INLINE_FOLDER, inline_script_tags, insert_messages
from explorer.web.middleware import AllowedHosts, content_policy

OURS = ["localhost:7860", "127.0.0.1:7860", "127.0.0.1", "[::1]:7860", "[::1]", "192.168.1.4:80", "LOCALHOST"]
OURS += ["localhost.", "tab.localhost", "someone-space.hf.space", "0123.gradio.live"]
OTHERS = ["evil", "evil.example:7860", "hf.space.evil.example", "evilhf.space", "localhost.evil", "127.0.0.1.evil"]


@pytest.mark.parametrize("host", OURS)
def test_a_server_answers_to_its_own_names_and_to_addresses(host):
    assert AllowedHosts.for_this_machine(None).allows(host)


@pytest.mark.parametrize("host", ["", "[::1].evil", *OTHERS])
def test_a_server_answers_to_no_other_name(host):
    assert not AllowedHosts.for_this_machine(None).allows(host)


def test_a_server_has_the_name_it_listens_on_and_that_of_its_machine(monkeypatch):
    monkeypatch.setenv("SPACE_HOST", "explorer.school.example")
    hosts = AllowedHosts.for_this_machine("Lab.example.org")
    assert hosts.allows("lab.example.org:7860") and hosts.allows("explorer.school.example")
    assert hosts.allows(socket.gethostname()) and not hosts.allows("example.org")


def test_a_server_may_be_given_more_names():
    hosts = AllowedHosts.for_this_machine(None, ["one.example", "*.school.example"])
    assert hosts.allows("one.example") and hosts.allows("a.b.school.example:443")
    assert not hosts.allows("school.example") and not hosts.allows("two.example")
    assert AllowedHosts(["*"]).allows("evil")


PAGE = b"""<head><script>window.a = 1;</script><script data-b>
  window.b = 2;
</script><script type="module" src="./assets/c.js"></script></head>"""


def test_only_scripts_that_the_page_was_sent_with_run():
    policy = dict(directive.split(" ", 1) for directive in content_policy(PAGE).split("; "))
    inline = (b"window.a = 1;", b"\n  window.b = 2;\n")
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in inline}
    assert set(policy["script-src"].split()) == {"'self'", "'unsafe-eval'"} | hashes
    assert policy["default-src"] == "'self'" and policy["object-src"] == "'none'"


def test_a_space_may_show_the_page_in_a_frame_and_nobody_else():
    assert content_policy(b"").endswith("frame-ancestors 'self' https://huggingface.co https://*.hf.space")


def test_the_page_gets_each_of_them():
    scripts = re.findall(r"<script>(.*?)</script>", inline_script_tags().decode(), re.DOTALL)
    assert [script.splitlines()[1] for script in scripts] == [
        path.read_text(encoding="utf-8").splitlines()[1] for path in sorted(INLINE_FOLDER.iterdir())
    ]
    assert scripts


def test_what_one_says_it_knows_in_every_language():
    message = "The server does not answer."
    script = insert_messages(f'const messages = {{}}; const other = {{}}; say(_("{message}"));')
    messages, rest = re.fullmatch(r"const messages = (.+?); (const other.+)", script).groups()
    assert json.loads(messages) == {"en": {}} | {
        language: {message: messages_for_js(language)[message]} for language in ("es", "zh-CN")
    }
    assert rest == f'const other = {{}}; say(_("{message}"));'


def test_no_translation_ends_the_script(monkeypatch):
    monkeypatch.setattr("explorer.translations.messages_for_js", lambda name: {"a": "</script><b>"})
    assert "</" not in insert_messages('{} _("a")')


def test_what_says_nothing_stays_as_it_is():
    assert insert_messages("const none = {};") == "const none = {};"
