"""Host names that a server answers to, its content security policy, and the page's inline scripts."""

import base64
import hashlib
import json
import re
import socket

from explorer.translations import messages_for_js
from explorer.web.assets import INLINE_FOLDER, inline_script_tags, insert_messages
from explorer.web.middleware import AllowedHosts, content_policy
from tests.subtest_loops import subtest_each

ALLOWED_NAMES = ["localhost:7860", "127.0.0.1:7860", "127.0.0.1", "[::1]:7860", "[::1]", "192.168.1.4:80", "LOCALHOST"]
ALLOWED_NAMES += ["localhost.", "tab.localhost", "someone-space.hf.space", "0123.gradio.live"]
FOREIGN_NAMES = [
    "evil",
    "evil.example:7860",
    "hf.space.evil.example",
    "evilhf.space",
    "localhost.evil",
    "127.0.0.1.evil",
]


@subtest_each("host", ALLOWED_NAMES)
def test_own_host_names_and_ip_addresses_are_allowed(host):
    assert AllowedHosts.for_this_machine(None).allows(host)


@subtest_each("host", ["", "[::1].evil", *FOREIGN_NAMES])
def test_other_host_names_are_refused(host):
    assert not AllowedHosts.for_this_machine(None).allows(host)


def test_listening_and_machine_names_are_allowed(monkeypatch):
    monkeypatch.setenv("SPACE_HOST", "explorer.school.example")
    hosts = AllowedHosts.for_this_machine("Lab.example.org")
    assert hosts.allows("lab.example.org:7860") and hosts.allows("explorer.school.example")
    assert hosts.allows(socket.gethostname()) and not hosts.allows("example.org")


def test_additional_host_names_are_allowed():
    hosts = AllowedHosts.for_this_machine(None, ["one.example", "*.school.example"])
    assert hosts.allows("one.example") and hosts.allows("a.b.school.example:443")
    assert not hosts.allows("school.example") and not hosts.allows("two.example")
    assert AllowedHosts(["*"]).allows("evil")


PAGE = b"""<head><script>window.a = 1;</script><script data-b>
  window.b = 2;
</script><script type="module" src="./assets/c.js"></script></head>"""


def test_policy_allows_scripts_of_page_only():
    policy = dict(directive.split(" ", 1) for directive in content_policy(PAGE).split("; "))
    inline = (b"window.a = 1;", b"\n  window.b = 2;\n")
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in inline}
    assert set(policy["script-src"].split()) == {"'self'", "'unsafe-eval'"} | hashes
    assert policy["default-src"] == "'self'" and policy["object-src"] == "'none'"


def test_only_hugging_face_may_embed_page():
    assert content_policy(b"").endswith("frame-ancestors 'self' https://huggingface.co https://*.hf.space")


def test_page_contains_every_inline_script():
    scripts = re.findall(r"<script>(.*?)</script>", inline_script_tags().decode(), re.DOTALL)
    assert [script.splitlines()[1] for script in scripts] == [
        path.read_text(encoding="utf-8").splitlines()[1] for path in sorted(INLINE_FOLDER.iterdir())
    ]
    assert scripts


def test_inline_script_has_messages_in_every_language():
    message = "The server does not answer."
    script = insert_messages(f'const messages = {{}}; const other = {{}}; say(_("{message}"));')
    messages, rest = re.fullmatch(r"const messages = (.+?); (const other.+)", script).groups()
    assert json.loads(messages) == {"en": {}} | {
        language: {message: messages_for_js(language)[message]} for language in ("es", "zh-CN")
    }
    assert rest == f'const other = {{}}; say(_("{message}"));'


def test_translation_cannot_end_inline_script(monkeypatch):
    monkeypatch.setattr("explorer.translations.messages_for_js", lambda name: {"a": "</script><b>"})
    assert "</" not in insert_messages('{} _("a")')


def test_script_without_messages_is_unchanged():
    assert insert_messages("const none = {};") == "const none = {};"
