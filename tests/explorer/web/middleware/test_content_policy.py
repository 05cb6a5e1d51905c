"""The page's content security policy."""

import base64
import hashlib

from explorer.web.middleware.security_middleware import content_policy

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
