"""Content-Security-Policy of the page."""

import base64
import hashlib
import re

INLINE = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)


def content_policy(page: bytes) -> str:
    """Return the Content-Security-Policy of one of Gradio's HTML pages.

    Nothing is loaded from other origins, and of inline scripts only those run that the page was sent with. Gradio
    compiles the widgets' scripts in the browser (unsafe-eval) and styles elements one by one (unsafe-inline). A
    Space shows the page in a frame of huggingface.co.
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
