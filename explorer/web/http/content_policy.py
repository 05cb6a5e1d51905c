"""What a browser lets the page do."""

import base64
import hashlib
import re

INLINE = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)


def content_policy(page: bytes) -> str:
    """The Content-Security-Policy of an HTML page of Gradio's: nothing comes from elsewhere, and of scripts within the
    page only those run that it was sent with.

    Gradio compiles the widgets' scripts in the browser (unsafe-eval) and styles elements one by one (unsafe-inline).
    A Space shows the page in a frame of huggingface.co.
    """
    hashes = (base64.b64encode(hashlib.sha256(script).digest()).decode() for script in INLINE.findall(page))
    policy = {
        "default-src": "'self'",
        "script-src": " ".join(("'self'", "'unsafe-eval'", *(f"'sha256-{name}'" for name in hashes))),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'self' https://huggingface.co https://*.hf.space",
    }
    return "; ".join(f"{name} {value}" for name, value in policy.items())
