"""The command `transformerlm-explorer`, which `python app.py` runs, too.

Imports only Python's own modules before `main`, so that it can say what is missing.
"""

from __future__ import annotations

import errno
import importlib.metadata
import os
import socket
import sys
import tempfile
from pathlib import Path

MIN_PYTHON = (3, 11)  # of the packages in requirements.txt
REQUIREMENTS = Path(__file__).parent.parent / "requirements.txt"  # of a clone; an installed package has metadata


def main() -> None:
    """Parse the command line and serve the page until Ctrl+C; exit with a sentence if that is not possible."""
    if sys.version_info[:2] < MIN_PYTHON:
        wanted, own = (".".join(map(str, version[:2])) for version in (MIN_PYTHON, sys.version_info))
        sys.exit(f"error: Python {wanted} or later is needed, this is {own}: make the environment with a newer python3")
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    # Threads of NumPy's small products would wait for one another under several users.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from explorer.cli_options import parse_arguments

        options = parse_arguments()
        check_port(options.host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1", options.port)
        check_temporary_folder()
        from explorer.serving import serve  # Gradio, which takes seconds
    except Exception as error:
        if not (others := mismatched_versions()):
            raise
        why = f"{type(error).__name__}: {error}"
        sys.exit(f"error: {why} ({'; '.join(others)}): install what is needed, pip install -r requirements.txt")
    try:
        serve(options, mismatched_versions())
    except MemoryError:
        sys.exit("error: memory ran out: close other programs, or open a smaller model with --checkpoint")


def check_port(host: str, port: int | None) -> None:
    """Exit with a sentence if a server cannot listen at the address; without a port only the host is tried."""
    if port and not 0 < port < 1 << 16:
        sys.exit(f"error: ports run from 1 to 65535, got --port {port}")
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(host, port or 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            sys.exit(f"error: port {port} is taken: choose another, such as --port {port + 1}, or leave --port out")
        if error.errno == errno.EACCES:
            sys.exit(f"error: this user may not listen on port {port}: choose one from 1024 on, such as --port 7860")
        sys.exit(f"error: cannot listen on {host}: {error.strerror or error}; see --host")


def check_temporary_folder() -> None:
    """Exit with a sentence if no temporary files can be written."""
    try:
        tempfile.gettempdir()
    except OSError:
        sys.exit("error: no folder for temporary files can be written: set TMPDIR to one that can, with some MB free")


def mismatched_versions() -> list[str]:
    """Return what is installed in other versions than the explorer was tried with, or is missing, as texts."""
    try:
        from packaging.requirements import Requirement
    except ImportError:  # as in an environment where nothing is installed
        return ["the packages are missing"]
    if REQUIREMENTS.is_file():
        lines = [line.partition("#")[0].strip() for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines()]
    else:
        try:
            lines = importlib.metadata.requires("transformerlm-explorer") or []
        except importlib.metadata.PackageNotFoundError:
            lines = []
    others = []
    for requirement in map(Requirement, filter(None, lines)):
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            others.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            others.append(f"{requirement.name} is {installed}, tried with {requirement.specifier}")
    return others
