"""Prompts with unusual characters and markup."""

NASTY_PROMPTS = [  # at most 32 tokens each
    " ",
    "\n\n\t\r\n",
    "<b>bold</b> &lt; &amp;lt;",
    "<img src=x onerror=alert(1)>",
    "${1+1} {{value}}",
    "@children %{x} $x$",
    "\x00\x07\x1b[31m\x7f",
    "שלום עולם \u202etxt.exe\u2069",
    "e\u0301 🌙 👩‍👩‍👧",
    "\ufeff\u200b\u00a0",
    "<|endoftext|>",
    "'; DROP TABLE tokens; --",
    "\U0010ffff\ufffd",
]
