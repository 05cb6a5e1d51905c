"""By which names a server may be asked for."""

import ipaddress
import os
import re
import socket
from collections.abc import Collection

SPACES, SHARED = "*.hf.space", "*.gradio.live"  # where Hugging Face and Gradio's `share` lend a name


class Hosts:
    """The names that a server answers to.

    A page elsewhere can make its own name point to this machine, and would then be let in as the server's own page
    (DNS rebinding). It cannot do so with an address, so all of these are answered.

    Args:
        names: "lab.example.org", or "*.example.org" for all below it, or "*" for any.
    """

    def __init__(self, names: Collection[str]):
        self.names = tuple(name.lower() for name in names)

    @classmethod
    def of_this_machine(cls, bound: str | None, more: Collection[str] = ()) -> "Hosts":
        """The names that a server has wherever it was started, and more.

        Args:
            bound: the name or address that it listens on; None: this machine only.
        """
        name = socket.gethostname()
        own = ("localhost", "*.localhost", name, f"{name}.local", bound or "", os.environ.get("SPACE_HOST", ""))
        return cls([name for name in (*own, SPACES, SHARED, *more) if name])

    def have(self, host: str) -> bool:
        """Whether the value of a request's `Host` is one of them, at any port."""
        name = re.sub(r":\d*$", "", host.strip()).strip("[]").rstrip(".").lower()
        return is_address(name) or any(matches(name, known) for known in self.names)


def matches(name: str, known: str) -> bool:
    return known in ("*", name) or (known.startswith("*.") and name.endswith(known[1:]))


def is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False
