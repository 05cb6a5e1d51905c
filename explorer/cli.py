"""The command `transformerlm-explorer`, which `python app.py` runs, too.

Imports only Python's own modules before `main`, so that it can say what is missing.
"""

from __future__ import annotations

import os
import sys

MIN_PYTHON = (3, 11)  # of the packages in requirements.txt


def main() -> None:
    """Parse the command line and serve the page until Ctrl+C; exit with a sentence if that is not possible."""
    if sys.version_info[:2] < MIN_PYTHON:
        wanted, own = (".".join(map(str, version[:2])) for version in (MIN_PYTHON, sys.version_info))
        sys.exit(f"error: Python {wanted} or later is needed, this is {own}: make the environment with a newer python3")
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    # Threads of NumPy's small products would wait for one another under several users.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from explorer.requirements_check import other_versions

    try:
        from explorer.options import parse_arguments
        from explorer.serving import serve
    except Exception as error:
        if not (others := other_versions()):
            raise
        why = f"{type(error).__name__}: {error}"
        sys.exit(f"error: {why} ({'; '.join(others)}): install what is needed, pip install -r requirements.txt")
    try:
        serve(parse_arguments())
    except MemoryError:
        sys.exit("error: memory ran out: close other programs, or open a smaller model with --checkpoint")
