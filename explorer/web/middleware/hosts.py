"""Host names that the server answers to."""

import ipaddress
import os
import re
import socket
from collections.abc import Collection

SPACES, SHARED = "*.hf.space", "*.gradio.live"  # where Hugging Face and Gradio's `share` lend a name


class AllowedHosts:
    """The host names that the server answers to.

    Another site can make its own name resolve to this machine, and its page would then have the server's origin (DNS
    rebinding). It cannot do so with an IP address, so all IP addresses are allowed.

    Args:
        names: "lab.example.org", or "*.example.org" for all below it, or "*" for any.
    """

    def __init__(self, names: Collection[str]):
        self.names = tuple(name.lower() for name in names)

    @classmethod
    def for_this_machine(cls, bound_host: str | None, more: Collection[str] = ()) -> "AllowedHosts":
        """Return the machine's own names, those of Spaces and Gradio's share links, and `more`.

        Args:
            bound_host: name or address that the server listens on; None for this machine only.
        """
        name = socket.gethostname()
        own_names = (
            "localhost",
            "*.localhost",
            name,
            f"{name}.local",
            bound_host or "",
            os.environ.get("SPACE_HOST", ""),
        )
        return cls([name for name in (*own_names, SPACES, SHARED, *more) if name])

    def allows(self, host: str) -> bool:
        """Return whether a request's `Host` header, with any port, is allowed."""
        name = re.sub(r":\d*$", "", host.strip()).strip("[]").rstrip(".").lower()
        return is_ip_address(name) or any(matches_pattern(name, pattern) for pattern in self.names)


def matches_pattern(name: str, pattern: str) -> bool:
    """Return whether a host name matches a name, "*.domain" or "*"."""
    return pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:]))


def is_ip_address(name: str) -> bool:
    """Return whether a name is an IP address."""
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False
