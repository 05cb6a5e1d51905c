"""Browser of the tests and benchmarks."""

import shutil
from pathlib import Path

from playwright.sync_api import Playwright

EXECUTABLE_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)  # ordered by startup time, fastest first
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_executable(playwright: Playwright) -> str:
    """Return the path of the system's Chromium, or else of Playwright's own.

    Raises:
        FileNotFoundError: no browser is installed.
    """
    path = next(filter(None, map(shutil.which, EXECUTABLE_NAMES)), playwright.chromium.executable_path)
    if not Path(path).exists():
        raise FileNotFoundError(
            f"needs a browser: apt-get install {EXECUTABLE_NAMES[0]}, or playwright install chromium"
        )
    return path
